// main.c - `simulate_job`: one exchange on all simulated ranks.
//
//     smpirun .. simulate_job sync=ring n=124475904 slice_kb=256
//
// Prints one line "@seconds=S": simulated, from a common start until the last
// worker has what it waits for. Started by lockstep simulate.

#include "simulate/job.h"

#include "base/base.h"
#include "config/keys.h"

#include <errno.h>
#include <limits.h>
#include <mpi.h>
#include <string.h>
#include <sys/mman.h>

// Sums of at most 4096 workers stay exact in fp32.
enum { VALUES = 7 };

static float value(int rank, size_t i)
{
    return (float)((i * 5 + (size_t)rank * 3) % VALUES);
}

float *gradient_open(const struct exchange *e)
{
    if (!e->payload) {
        void *p = mmap(NULL, e->n * sizeof(float), PROT_READ,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p != MAP_FAILED)
            return p;
        fail("mmap of %zu elements: %s", e->n, strerror(errno));
        return NULL;
    }
    float *v = mem_alloc(e->n, sizeof *v);
    for (size_t i = 0; v && i < e->n; i++)
        v[i] = value(e->rank, i);
    return v;
}

int gradient_check(const struct exchange *e, const float *sums)
{
    for (size_t i = 0; e->payload && i < e->n; i++) {
        float want = 0;
        for (int r = 0; r < e->world; r++)
            want += value(r, i);
        if (sums[i] != want)
            return fail("rank %d: element %zu is %g, the sum is %g", e->rank, i,
                        (double)sums[i], (double)want);
    }
    return 0;
}

void gradient_close(const struct exchange *e, float *vector)
{
    if (e->payload)
        mem_free(vector);
    else if (vector)
        munmap(vector, e->n * sizeof(float));
}

// The order of the words of sync=.
enum { RING, ALLREDUCE, SPS, DPS };

#define AT(member) offsetof(struct exchange, member), false

static const struct key rows[] = {
    {NULL, "sync", "ring", KEY_CHOICE, AT(sync),
     .words = (const char *const[]){"ring", "allreduce", "sps", "dps", NULL}},
    {NULL, "workers", "2", KEY_INT, AT(world), .min = 2, .max = 1 << 16},
    {NULL, "n", "1", KEY_INT64, AT(n), .min = 1, .max = INT_MAX},
    {NULL, "slice_kb", "0", KEY_INT, AT(slice_kb), .min = 0, .max = 1 << 20},
    {NULL, "payload", "0", KEY_INT, AT(payload), .min = 0, .max = 1},
    {NULL, "worker_updates", "0", KEY_INT, AT(worker_updates), .min = 0,
     .max = 1},
    {NULL, "bucket_mb", "0", KEY_NUMBER, AT(bucket_mb), .min = 0, .max = 1e6},
};

static const struct key_table keys = {rows, sizeof rows / sizeof *rows,
                                      "simulate/main.c"};

static int run(int nwords, char **words, double *seconds)
{
    struct exchange e = {0};
    int ranks;
    key_defaults(&keys, &e);
    if (key_words(&keys, &e, nwords, words))
        return -1;
    MPI_Comm_rank(MPI_COMM_WORLD, &e.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    e.servers = ranks - e.world;
    if (e.sync == RING)
        return exchange_ring(&e, seconds);
    if (e.sync == ALLREDUCE)
        return exchange_allreduce(&e, seconds);
    return exchange_servers(&e, seconds);
}

int main(int argc, char **argv)
{
    double mine = 0, last;
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (run(argc - 1, argv + 1, &mine))
        die("%s", fail_message());
    MPI_Reduce(&mine, &last, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("@seconds=%.9g\n", last);
    MPI_Finalize();
    return 0;
}
