// ring.c - runs the ring that trains (horovod_ring/) on simulated ranks.
//
// The same code runs here: plan.c, flow.c and ring_wire.c. Only wire_landed()
// of ring_wire.c, which adds a slice, is replaced by the linker with the
// function below: without payload there is nothing to add.

#include "simulate/exchange.h"
#include "simulate/streams_mpi.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "horovod_ring/flow.h"
#include "sync/bucket.h"

#include <mpi.h>

enum { MOST_MESSAGE = 1 << 30 }; // bytes; MPI counts them in an int

// The flow measures real time, so its deadline is off here. The program that
// starts the simulation has a deadline of its own.
static const double no_deadline_s = 1e6;

void __real_wire_landed(struct wire *w, const struct group_vector *v,
                        uint64_t k, struct group_chunk piece, bool adds,
                        bool completes);
void __wrap_wire_landed(struct wire *w, const struct group_vector *v,
                        uint64_t k, struct group_chunk piece, bool adds,
                        bool completes);

void __wrap_wire_landed(struct wire *w, const struct group_vector *v,
                        uint64_t k, struct group_chunk piece, bool adds,
                        bool completes)
{
    if (w->landing)
        __real_wire_landed(w, v, k, piece, adds, completes);
}

struct ring {
    const struct exchange *e;
    float *vector;
    struct bucket *buckets;
    int nbuckets;
    size_t slice_bytes;
    struct group_op *ops;
    struct streams streams;
    struct wire wire;
};

static int run(struct ring *r)
{
    struct flow flow = {
        .streams = &r->streams,
        .wire = &r->wire,
        .name = "simulate",
        .ops = r->ops,
        .depth = (size_t)r->nbuckets,
        .slice_bytes = r->slice_bytes,
        .timeout_s = no_deadline_s,
        .plan = {.grain = 1},
    };
    flow_open(&flow);
    for (int b = 0; b < r->nbuckets; b++)
        flow_post(&flow, &(struct group_op){.verb = GROUP_ALL_REDUCE,
                                            .vector = group_floats(
                                                r->vector + r->buckets[b].off,
                                                r->buckets[b].n)});
    int rc = flow_advance(&flow);
    while (!rc && flow_done(&flow) < flow.posted)
        rc = flow_wait(&flow, 0) || flow_advance(&flow) ? -1 : 0;
    return rc;
}

// Divides the gradient into buckets, and these into chunks and slices.
static int cut(struct ring *r)
{
    const struct exchange *e = r->e;
    size_t most = (size_t)(e->bucket_mb * 1024 * 1024 / sizeof(float));
    most = most ? most : e->n;
    int count = (int)((e->n + most - 1) / most);
    size_t chunk = group_chunk(most, 1, e->world, 0).n * sizeof(float);
    chunk = chunk < MOST_MESSAGE ? chunk : MOST_MESSAGE;
    r->slice_bytes = e->slice_kb ? (size_t)e->slice_kb * 1024 : chunk;
    r->buckets = mem_alloc((size_t)count, sizeof *r->buckets);
    r->ops = mem_alloc((size_t)count, sizeof *r->ops);
    if (!r->buckets || !r->ops)
        return -1;
    r->nbuckets = bucket_cut(r->buckets, count, e->n, most, most);
    return r->nbuckets < 0 ? -1 : 0;
}

static int connect(struct ring *r)
{
    struct cluster c = {.rank = r->e->rank, .world = r->e->world};
    struct streams_config config = {
        .name = "simulate",
        .message = r->slice_bytes + sizeof(struct head),
        .payload = r->e->payload,
    };
    return streams_open(&r->streams, &streams_mpi, &c, &config);
}

int exchange_ring(const struct exchange *e, double *seconds)
{
    struct ring r = {.e = e};
    int rc = -1;
    r.vector = gradient_open(e);
    if (!r.vector || cut(&r) || connect(&r) ||
        (e->payload && wire_open(&r.wire, 0, r.slice_bytes)))
        goto close_ring;
    MPI_Barrier(MPI_COMM_WORLD);
    double began = MPI_Wtime();
    rc = run(&r);
    *seconds = MPI_Wtime() - began;
    if (!rc)
        rc = gradient_check(e, r.vector);
close_ring:
    streams_close(&r.streams);
    wire_close(&r.wire);
    mem_free(r.ops);
    mem_free(r.buckets);
    gradient_close(e, r.vector);
    return rc;
}
