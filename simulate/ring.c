// ring.c - runs the ring that trains (horovod_ring/) on simulated ranks.

#include "simulate/exchange.h"
#include "simulate/group_simulated.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "sync/bucket.h"

enum { MOST_MESSAGE = 1 << 30 }; // bytes; MPI counts them in an int

// Sums the buckets of the vector. All of them are under way at once.
static int run(struct group *g, float *vector, const struct bucket *buckets,
               int nbuckets)
{
    uint64_t ticket = 0;
    for (int b = 0; b < nbuckets; b++) {
        const struct group_vector v =
            group_floats(vector + buckets[b].off, buckets[b].n);
        if (group_all_reduce(g, &v, &ticket))
            return -1;
    }
    return group_await(g, ticket);
}

int exchange_ring(const struct exchange *e, double *seconds)
{
    struct cluster c = {.rank = e->rank,
                        .world = e->world,
                        .timeout_s = NO_DEADLINE_S};
    size_t count = (e->n + e->bucket - 1) / e->bucket;
    size_t chunk = group_chunk(e->bucket, 1, e->world, 0).n * sizeof(float);
    chunk = chunk < MOST_MESSAGE ? chunk : MOST_MESSAGE;
    const struct group_job job = {.name = "simulate",
                                  .cluster = &c,
                                  .depth = count,
                                  .slice_bytes =
                                      e->slice_kb ? (size_t)e->slice_kb * 1024
                                                  : chunk};
    float *vector = gradient_open(e);
    struct bucket *buckets = mem_alloc(count, sizeof *buckets);
    struct group *g = NULL;
    int rc = -1;
    contents_open(e, job.slice_bytes);
    simulated_messages(job.slice_bytes, 2, e->payload);
    if (vector && buckets)
        g = group_open(&ring_simulated, &job);
    if (!g || bucket_cut(buckets, (int)count, e->n, e->bucket, e->bucket) < 0)
        goto close_ring;
    MPI_Barrier(MPI_COMM_WORLD);
    double began = MPI_Wtime();
    rc = run(g, vector, buckets, (int)count);
    *seconds = MPI_Wtime() - began;
    if (!rc)
        rc = gradient_check(e, vector);
close_ring:
    group_close(&g);
    mem_free(buckets);
    gradient_close(e, vector);
    return rc;
}
