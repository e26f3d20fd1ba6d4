// owner.c - all workers send their gradients to worker 0, which sends the next
// parameters to all.
//
// Whole vectors travel. A send ends when the receiver has everything. So in
// each direction the messages on worker 0's link follow one after the other.

#include "simulate/exchange.h"

#include "base/base.h"
#include "device/vector.h"
#include "message/carry.h"

static void owner(const struct exchange *e, float *own, float *landing)
{
    MPI_Request r;
    size_t bytes = e->n * sizeof *own;
    for (int k = 1; k < e->world; k++) {
        carry_receive(landing, bytes, k, &r);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        if (e->payload)
            vector_add(own, landing, DTYPE_F32, e->n);
    }
    for (int k = 1; k < e->world; k++) {
        carry_send(own, bytes, k, &r);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
    }
}

static void other(const struct exchange *e, float *own)
{
    MPI_Request r;
    size_t bytes = e->n * sizeof *own;
    carry_send(own, bytes, 0, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    carry_receive(own, bytes, 0, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
}

int exchange_owner(const struct exchange *e, double *seconds)
{
    size_t bytes = e->n * sizeof(float);
    int rc = -1;
    contents_open(e, bytes);
    float *own = e->payload ? gradient_open(e) : carry_buffer(bytes);
    float *landing = carry_buffer(bytes);
    if (!own || !landing)
        goto close_vectors;
    MPI_Barrier(MPI_COMM_WORLD);
    double began = MPI_Wtime();
    if (e->rank == 0)
        owner(e, own, landing);
    else
        other(e, own);
    *seconds = MPI_Wtime() - began;
    rc = gradient_check(e, own);
close_vectors:
    if (e->payload)
        gradient_close(e, own);
    else
        carry_free(own);
    carry_free(landing);
    return rc;
}
