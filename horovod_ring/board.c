// board.c - what workers of one host tell each other through shared memory.

#include "horovod_ring/board.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "device/device.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LINE = 64, LOOK_MS = 100 }; // bytes; between looks at the others

struct page {
    struct {
        _Alignas(LINE) _Atomic uint64_t at;
    } words[BOARD_WORDS];
    _Alignas(LINE) _Atomic uint32_t bell; // rung by others
    _Atomic uint32_t asleep;
    _Atomic int32_t failed; // 0, or 1 + the rank whose fault it was
    _Atomic uint32_t left;  // closed
    _Alignas(LINE) float window[2][BOARD_WINDOW];
};

// ---- meeting

static uint64_t inode_of(const char *path)
{
    struct stat st;
    return stat(path, &st) ? 0 : st.st_ino;
}

// What all workers must have in common: host, user, namespaces.
static uint64_t place_hash(void)
{
    char text[256] = "", host[256] = "";
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    gethostname(host, sizeof host - 1);
    uint64_t parts[] = {inode_of("/proc/self/ns/pid"),
                        inode_of("/proc/self/ns/net"), geteuid(),
                        hash_bytes(host, strlen(host))};
    return hash_more(hash_bytes(text, got > 0 ? (size_t)got : 0), parts,
                     sizeof parts);
}

struct probe {
    uint64_t place;
    struct shared_name name;
};

static bool can_map(const struct probe *all, int world)
{
    for (int r = 0; r < world; r++) {
        void *p = shared_map(&all[r].name, true);
        shared_unmap(p, &all[r].name);
        if (!p)
            return false;
    }
    return true;
}

int board_possible(struct cluster *c, char why[128])
{
    struct probe mine = {.place = place_hash()};
    int *maps = mem_alloc((size_t)c->world, sizeof *maps), possible = -1;
    struct probe *all = mem_alloc((size_t)c->world, sizeof *all);
    void *piece = maps && all ? shared_alloc(1, &mine.name) : NULL;
    if (!piece || cluster_allgather(c, &mine, all, sizeof mine))
        goto free_all;
    int other = 0;
    while (other < c->world && all[other].place == all[0].place)
        other++;
    int can = other == c->world && can_map(all, c->world);
    if (cluster_allgather(c, &can, maps, sizeof can))
        goto free_all;
    possible = 1;
    for (int r = c->world - 1; r >= 0; r--) {
        if (maps[r])
            continue;
        possible = 0;
        snprintf(why, 128, "rank %d cannot map the others' memory", r);
    }
    if (other < c->world)
        snprintf(why, 128,
                 "rank %d is on another host, or in a namespace of "
                 "its own",
                 other);
free_all:
    if (piece)
        shared_free(piece, &mine.name);
    mem_free(all);
    mem_free(maps);
    return possible;
}

static int map_peer(struct board *b, int r)
{
    struct board_peer *p = &b->peers[r];
    p->page = shared_map(&p->page_name, true);
    p->vector = p->page ? shared_map(&p->vector_name, true) : NULL;
    // Without pidfd (Linux 5.3) only the deadline tells.
    p->watch = (int)syscall(SYS_pidfd_open, p->page_name.pid, 0);
    return p->vector ? 0 : -1;
}

int board_open(struct board *b, struct cluster *c, struct device *host,
               float *vector)
{
    struct shared_name mine[2], *all = NULL;
    int rc = -1;
    *b = (struct board){.host = host,
                        .rank = c->rank,
                        .world = c->world,
                        .timeout_s = c->timeout_s,
                        .crowded = c->world > sysconf(_SC_NPROCESSORS_ONLN),
                        .culprit = -1};
    b->peers = mem_alloc((size_t)c->world, sizeof *b->peers);
    for (int r = 0; b->peers && r < c->world; r++)
        b->peers[r].watch = -1;
    all = mem_alloc((size_t)c->world, sizeof mine);
    b->own = device_alloc_shared(host, 1, sizeof *b->own);
    if (!b->peers || !all || !b->own)
        goto free_all;
    CHECK(device_shared(host, b->own, &mine[0]) &&
          device_shared(host, vector, &mine[1]));
    if (cluster_allgather(c, mine, all, sizeof mine))
        goto free_all;
    for (int r = 0; r < c->world; r++) {
        struct board_peer *p = &b->peers[r];
        p->page_name = all[2 * r];
        p->vector_name = all[2 * r + 1];
        if (r != c->rank && map_peer(b, r))
            goto free_all;
    }
    b->peers[c->rank].page = b->own;
    b->peers[c->rank].vector = vector;
    rc = cluster_barrier(c); // all have mapped before anybody goes
free_all:
    mem_free(all);
    return rc;
}

static void ring_bells(const struct board *b)
{
    for (int r = 0; r < b->world; r++) {
        struct page *p = b->peers[r].page;
        if (!p || r == b->rank || !atomic_load(&p->asleep))
            continue;
        atomic_fetch_add(&p->bell, 1);
        syscall(SYS_futex, &p->bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    }
}

void board_close(struct board *b)
{
    if (b->peers && b->own) {
        atomic_store(&b->own->left, 1);
        ring_bells(b);
    }
    for (int r = 0; b->peers && r < b->world; r++) {
        struct board_peer *p = &b->peers[r];
        if (p->watch >= 0)
            close(p->watch);
        if (r == b->rank)
            continue;
        shared_unmap(p->page, &p->page_name);
        shared_unmap(p->vector, &p->vector_name);
    }
    if (b->own)
        device_free(b->host, b->own);
    mem_free(b->peers);
    *b = (struct board){0};
}

// ---- telling and waiting

// Reads and writes are sequentially consistent: either a sleeper sees the new
// value, or whoever wrote it sees the sleeper.
uint64_t board_read(const struct board *b, int rank, enum board_word w)
{
    return atomic_load(&b->peers[rank].page->words[w].at);
}

void board_tell(struct board *b, enum board_word w, uint64_t value)
{
    atomic_store(&b->own->words[w].at, value);
    ring_bells(b);
}

uint64_t board_least(const struct board *b, enum board_word w)
{
    uint64_t least = board_read(b, 0, w);
    for (int r = 1; r < b->world; r++) {
        uint64_t at = board_read(b, r, w);
        least = at < least ? at : least;
    }
    return least;
}

float *board_window(const struct board *b, uint64_t piece)
{
    return b->peers[0].page->window[piece % 2];
}

// Differs whenever anything has changed.
static uint64_t all_words(const struct board *b)
{
    uint64_t sum = 0;
    for (int r = 0; r < b->world; r++)
        for (int w = 0; w < BOARD_WORDS; w++)
            sum += board_read(b, r, (enum board_word)w);
    return sum;
}

static int give_up(struct board *b, int culprit)
{
    b->culprit = culprit;
    atomic_store(&b->own->failed, 1 + culprit);
    ring_bells(b);
    return -1;
}

// A vector is ready before it is summed: whoever is behind with the first of
// these keeps all others waiting.
static bool behind(const struct board *b, int r, enum board_word w,
                   uint64_t goal)
{
    for (int first = w < GIVEN ? READY : GIVEN; first <= (int)w; first++)
        if ((first != GIVEN || r == 0) &&
            board_read(b, r, (enum board_word)first) < goal)
            return true;
    return false;
}

static int whom_we_await(const struct board *b, enum board_word w,
                         uint64_t goal)
{
    for (int first = w < GIVEN ? READY : GIVEN; first <= (int)w; first++)
        for (int r = 0; r < b->world; r++)
            if (r != b->rank && behind(b, r, (enum board_word)first, goal))
                return r;
    return b->rank;
}

// Is somebody gone without whom it cannot go on?
static int look_around(struct board *b, enum board_word w, uint64_t goal)
{
    for (int r = 0; r < b->world; r++) {
        const struct board_peer *p = &b->peers[r];
        struct pollfd end = {.fd = p->watch, .events = POLLIN};
        if (r == b->rank)
            continue;
        int failed = atomic_load(&p->page->failed);
        bool left = atomic_load(&p->page->left);
        bool dead = poll(&end, 1, 0) > 0;
        if (failed > 0) {
            fail("ring: rank %d failed, says rank %d", failed - 1, r);
            return give_up(b, failed - 1);
        }
        if ((left || dead) && behind(b, r, w, goal)) {
            fail("ring: rank %d %s", r, left ? "closed" : "is gone");
            return give_up(b, r);
        }
    }
    return 0;
}

// With fewer cores than workers, the other may need this very core.
static void relax(const struct board *b)
{
    if (b->crowded)
        sched_yield();
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

// Until the bell rings, or it is time to look around; not at all if anything
// has changed since `seen`.
static void sleep_until_bell(struct board *b, uint64_t seen)
{
    struct page *mine = b->own;
    const struct timespec most = {.tv_nsec = LOOK_MS * 1000000};
    uint32_t bell = atomic_load(&mine->bell);
    atomic_store(&mine->asleep, 1);
    if (all_words(b) == seen)
        syscall(SYS_futex, &mine->bell, FUTEX_WAIT, bell, &most, NULL, 0);
    atomic_store(&mine->asleep, 0);
}

int board_await(struct board *b, enum board_word w, uint64_t goal,
                bool (*work)(void *arg), void *arg)
{
    uint64_t seen = 0, moved = 0, limit = (uint64_t)(b->timeout_s * 1e9);
    while (!work(arg)) {
        uint64_t now = now_ns(), at = all_words(b);
        if (at != seen || moved == 0) {
            seen = at;
            moved = now;
        }
        if (now - moved < BOARD_SPIN_NS) {
            relax(b);
            continue;
        }
        sleep_until_bell(b, seen);
        if (all_words(b) != seen)
            continue;
        if (look_around(b, w, goal))
            return work(arg) ? 0 : -1;
        if (now_ns() - moved < limit)
            continue;
        int whom = whom_we_await(b, w, goal);
        fail("ring: nothing from rank %d for %g s; try: look at its log, or a "
             "longer timeout=",
             whom, b->timeout_s);
        return give_up(b, whom);
    }
    return 0;
}
