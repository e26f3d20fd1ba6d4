// ring.c - the product's ring (plan.c, flow.c, wire.c) on simulated ranks.
//
// What runs is horovod_ring's own state machine. The linker puts the function
// below in the place of wire.c's where a slice that came in is added, because
// without payload there is nothing to add.

#include "simulate/job.h"
#include "simulate/transport_mpi.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "config/config.h"
#include "horovod_ring/flow.h"
#include "sync/bucket.h"

#include <mpi.h>

enum { MOST_MESSAGE = 1 << 30 }; // bytes, which MPI counts in an int

// The flow measures real time; whoever starts the simulation keeps a deadline.
static const double no_deadline_s = 1e6;

void __real_wire_landed(struct wire *w, const struct task *t, uint64_t k,
                        struct span piece, bool partial, bool complete);
void __wrap_wire_landed(struct wire *w, const struct task *t, uint64_t k,
                        struct span piece, bool partial, bool complete);

void __wrap_wire_landed(struct wire *w, const struct task *t, uint64_t k,
                        struct span piece, bool partial, bool complete)
{
    if (w->landing)
        __real_wire_landed(w, t, k, piece, partial, complete);
}

struct ring {
    const struct exchange *e;
    float *vector;
    struct bucket *buckets;
    int nbuckets;
    size_t slice_bytes;
    struct task *tasks;
    struct transport *transport;
    struct wire wire;
};

static int run(struct ring *r)
{
    struct flow flow;
    struct flow_config config = {
        .transport = r->transport,
        .wire = &r->wire,
        .tasks = r->tasks,
        .most = (size_t)r->nbuckets,
        .slice_bytes = r->slice_bytes,
        .timeout_s = no_deadline_s,
    };
    flow_open(&flow, &config);
    for (int b = 0; b < r->nbuckets; b++)
        flow_post(&flow, &(struct task){.data = r->vector + r->buckets[b].off,
                                        .n = r->buckets[b].n});
    int rc = flow_advance(&flow);
    while (!rc && flow_done(&flow) < flow.posted)
        rc = flow_wait(&flow, 0) || flow_advance(&flow) ? -1 : 0;
    return rc;
}

// How the gradient is cut: into buckets, chunks of these, slices of those.
static int cut(struct ring *r)
{
    const struct exchange *e = r->e;
    size_t most = (size_t)(e->bucket_mb * 1024 * 1024 / sizeof(float));
    most = most ? most : e->n;
    int count = (int)((e->n + most - 1) / most);
    size_t chunk = plan_chunk(most, e->world, 0).n * sizeof(float);
    chunk = chunk < MOST_MESSAGE ? chunk : MOST_MESSAGE;
    r->slice_bytes = e->slice_kb ? (size_t)e->slice_kb * 1024 : chunk;
    r->buckets = mem_alloc((size_t)count, sizeof *r->buckets);
    r->tasks = mem_alloc((size_t)count, sizeof *r->tasks);
    if (!r->buckets || !r->tasks)
        return -1;
    r->nbuckets = bucket_cut(r->buckets, count, e->n, most, most);
    return r->nbuckets < 0 ? -1 : 0;
}

static int connect(struct ring *r)
{
    char text[64];
    struct cluster c = {.rank = r->e->rank, .world = r->e->world};
    struct opts *opts = NULL;
    size_t message = r->slice_bytes + sizeof(struct head);
    int rc = text_into(text, sizeof text, "payload=%d,message=%zu",
                       r->e->payload, message) ||
                     opts_open(&opts, text) ||
                     transport_open(&r->transport, &transport_mpi, &c, opts)
                 ? -1
                 : 0;
    opts_close(&opts);
    return rc;
}

int exchange_ring(const struct exchange *e, double *seconds)
{
    struct ring r = {.e = e, .wire = {.type = DTYPE_F32, .divisor = 1}};
    int rc = -1;
    r.vector = gradient_open(e);
    if (!r.vector || cut(&r) || connect(&r) ||
        (e->payload && wire_open(&r.wire, DTYPE_F32, e->world, e->n,
                                 r.slice_bytes / sizeof(float))))
        goto close_ring;
    MPI_Barrier(MPI_COMM_WORLD);
    double began = MPI_Wtime();
    rc = run(&r);
    *seconds = MPI_Wtime() - began;
    if (!rc)
        rc = gradient_check(e, r.vector);
close_ring:
    transport_close(&r.transport);
    wire_close(&r.wire);
    mem_free(r.tasks);
    mem_free(r.buckets);
    gradient_close(e, r.vector);
    return rc;
}
