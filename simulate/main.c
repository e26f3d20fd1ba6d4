// main.c - `simulate_job`: one exchange on all simulated ranks.
//
//     smpirun .. simulate_job sync=ring,n=124475904,slice_kb=256
//
// Prints one line "@seconds=S": simulated, from a common start until the last
// worker has what it waits for. Started by lockstep simulate.

#include "simulate/job.h"

#include "base/base.h"
#include "config/config.h"

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

static int run(struct opts *opts, double *seconds)
{
    static const char *const names[] = {"ring", "allreduce", "sps", "dps",
                                        NULL};
    struct exchange e = {0};
    long n, payload, updates, workers;
    int sync, ranks;
    if (opts_word(opts, "sync", 0, names, &sync) ||
        opts_int(opts, "workers", 2, 2, 1 << 16, &workers) ||
        opts_int(opts, "n", 1, 1, INT_MAX, &n) ||
        opts_int(opts, "slice_kb", 0, 0, 1 << 20, &e.slice_kb) ||
        opts_int(opts, "payload", 0, 0, 1, &payload) ||
        opts_int(opts, "worker_updates", 0, 0, 1, &updates) ||
        opts_number(opts, "bucket_mb", 0, 0, 1e6, &e.bucket_mb) ||
        opts_unread(opts, "simulate_job"))
        return -1;
    e.world = (int)workers;
    e.n = (size_t)n;
    e.payload = payload;
    e.worker_updates = updates;
    MPI_Comm_rank(MPI_COMM_WORLD, &e.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    e.servers = ranks - e.world;
    if (sync == 0)
        return exchange_ring(&e, seconds);
    if (sync == 1)
        return exchange_allreduce(&e, seconds);
    return exchange_servers(&e, seconds);
}

int main(int argc, char **argv)
{
    double mine = 0, last;
    int rank;
    struct opts *opts = NULL;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (opts_open(&opts, argc > 1 ? argv[1] : "") || run(opts, &mine))
        die("%s", fail_message());
    opts_close(&opts);
    MPI_Reduce(&mine, &last, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("@seconds=%.9g\n", last);
    MPI_Finalize();
    return 0;
}
