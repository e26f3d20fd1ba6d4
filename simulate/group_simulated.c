// group_simulated.c - does the verbs of group.h on simulated ranks.
//
// The ring is the one that trains: its flow and its pairs, over streams_mpi.c.
// The library is SimGrid's MPI, whose collectives block; smpirun is told their
// algorithms. All ranks of MPI_COMM_WORLD are members.

#include "simulate/group_simulated.h"

#include "allreduce/operands.h"
#include "base/base.h"
#include "horovod_ring/ring_flow.h"
#include "simulate/exchange.h"
#include "simulate/streams_mpi.h"

#include <mpi.h>

// ---- the ring

static int ring_open(struct group *g)
{
    struct ring_flow *r = g->state;
    int rc = ring_flow_open(g, &streams_mpi_stream);
    if (!contents_travel())
        wire_close(&r->wire); // nothing is added (simulate/ring.c)
    return rc;
}

const struct group_ops ring_simulated = {
    .name = "simulated ring",
    .state_size = sizeof(struct ring_flow),
    .open = ring_open,
    .begin = ring_flow_begin,
    .advance = ring_flow_advance,
    .wait = ring_flow_wait_unspun,
    .abort = ring_flow_abort,
    .close = ring_flow_close,
};

// ---- the library

struct library {
    uint64_t done;
};

static int library_open(struct group *g)
{
    (void)g;
    return 0;
}

static int library_begin(struct group *g, const struct group_op *op)
{
    struct library *l = g->state;
    void *data = op->vector.data;
    int n = (int)op->vector.n, chunk = n / g->size;
    CHECK(op->vector.type == DTYPE_F32 && !group_casts(&op->vector));
    operands_count(g, op);
    l->done++;
    if (op->verb == GROUP_ALL_REDUCE) {
        MPI_Allreduce(MPI_IN_PLACE, data, n, MPI_FLOAT, MPI_SUM,
                      MPI_COMM_WORLD);
        return 0;
    }
    CHECK(chunk * g->size == n); // messages of one length
    if (op->verb == GROUP_ALL_TO_ALL)
        MPI_Alltoall(op->given.data, chunk, MPI_FLOAT, data, chunk, MPI_FLOAT,
                     MPI_COMM_WORLD);
    else
        MPI_Allgather(MPI_IN_PLACE, 0, MPI_FLOAT, data, chunk, MPI_FLOAT,
                      MPI_COMM_WORLD);
    return 0;
}

static int library_advance(struct group *g, uint64_t *done)
{
    const struct library *l = g->state;
    *done = l->done;
    return 0;
}

static int library_wait(struct group *g, uint64_t spin_ns)
{
    (void)g;
    (void)spin_ns;
    return 0;
}

static void library_close(struct group *g)
{
    (void)g;
}

const struct group_ops library_simulated = {
    .name = "simulated MPI",
    .library = true,
    .state_size = sizeof(struct library),
    .open = library_open,
    .begin = library_begin,
    .advance = library_advance,
    .wait = library_wait,
    .close = library_close,
};
