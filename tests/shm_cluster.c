// shm_cluster.c - a cluster of forked test workers over shared memory.
//
// Each rank writes its share into shared memory and increments its counter,
// then waits for the counters of all ranks. Exchanges alternate between two
// halves of the memory: a rank can be one exchange ahead of the slowest, never
// two.

#include "tests/shm_cluster.h"

#include "base/base.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { RANKS = 16, SHARE = 1 << 16 };

struct shm_counters {
    atomic_uint count[RANKS];
    char share[2][RANKS][SHARE];
};

struct view {
    struct shm_counters *counters;
    unsigned round;
};

struct shm_counters *shm_counters_open(void)
{
    struct shm_counters *b = mmap(NULL, sizeof *b, PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (b != MAP_FAILED)
        return b;
    fail("counters: no shared memory");
    return NULL;
}

void shm_counters_close(struct shm_counters **b)
{
    if (*b)
        munmap(*b, sizeof **b);
    *b = NULL;
}

static int view_gather(struct cluster *c, const void *in, void *out,
                       size_t bytes)
{
    struct view *v = c->state;
    struct shm_counters *b = v->counters;
    CHECK(bytes <= SHARE);
    unsigned half = v->round++ % 2;
    memcpy(b->share[half][c->rank], in, bytes);
    atomic_store(&b->count[c->rank], v->round);
    uint64_t start = now_ns();
    for (int r = 0; r < c->world; r++) {
        while (atomic_load(&b->count[r]) < v->round) {
            if ((double)(now_ns() - start) > c->timeout_s * 1e9)
                return fail("cluster: rank %d did not join within %g s", r,
                            c->timeout_s);
            usleep(100);
        }
        memcpy((char *)out + (size_t)r * bytes, b->share[half][r], bytes);
    }
    return 0;
}

static void view_close(struct cluster *c)
{
    mem_free(c->state);
}

static const struct cluster_ops view_ops = {
    .allgather = view_gather,
    .close = view_close,
};

int shm_cluster_open(struct cluster **out, struct shm_counters *b, int rank,
                     int world, double timeout_s)
{
    CHECK(world <= RANKS);
    struct cluster *c = mem_alloc(1, sizeof *c);
    struct view *v = mem_alloc(1, sizeof *v);
    if (!c || !v) {
        mem_free(c);
        mem_free(v);
        return -1;
    }
    v->counters = b;
    *c = (struct cluster){.ops = &view_ops,
                          .rank = rank,
                          .world = world,
                          .timeout_s = timeout_s,
                          .state = v};
    *out = c;
    return 0;
}
