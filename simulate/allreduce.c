// allreduce.c - times MPI_Allreduce, with the algorithm that smpirun was told
// to use.

#include "simulate/exchange.h"

#include "base/base.h"

// MPI's sum without payload: it adds nothing and takes no time.
static void add_nothing(void *in, void *inout, int *n, MPI_Datatype *type)
{
    (void)in;
    (void)inout;
    (void)n;
    (void)type;
}

static void reduce(const struct exchange *e, float *in, float *out, MPI_Op op)
{
    for (size_t off = 0; off < e->n; off += e->bucket) {
        size_t n = e->n - off < e->bucket ? e->n - off : e->bucket;
        MPI_Allreduce(in + off, out + off, (int)n, MPI_FLOAT, op,
                      MPI_COMM_WORLD);
    }
}

int exchange_allreduce(const struct exchange *e, double *seconds)
{
    MPI_Op op = MPI_SUM;
    float *in, *out;
    int rc = -1;
    if (e->payload) {
        in = gradient_open(e);
        out = mem_alloc(e->n, sizeof *out);
    } else {
        MPI_Op_create(add_nothing, 1, &op);
        in = out = SMPI_SHARED_MALLOC(e->n * sizeof(float));
    }
    if (!in || !out)
        goto close_vectors;
    MPI_Barrier(MPI_COMM_WORLD);
    double began = MPI_Wtime();
    reduce(e, in, out, op);
    *seconds = MPI_Wtime() - began;
    rc = gradient_check(e, out);
close_vectors:
    if (e->payload) {
        gradient_close(e, in);
        mem_free(out);
    } else {
        SMPI_SHARED_FREE(in);
        MPI_Op_free(&op);
    }
    return rc;
}
