// half_types.c - sums in fp16 and bf16 for MPI, which has no such types.

#include "allreduce/half_types.h"

#include "device/vector.h"
#include "message/mpi_call.h"

enum { BLOCK = 4096 }; // elements: 16 KiB stay in the first-level cache

static void add(const uint16_t *in, uint16_t *inout, size_t n,
                enum dtype format)
{
    float wide[BLOCK];
    for (size_t i = 0; i < n; i += BLOCK) {
        size_t len = n - i < BLOCK ? n - i : BLOCK;
        vector_cast(wide, DTYPE_F32, in + i, format, len);
        vector_add_into_wire(inout + i, format, wide, len);
    }
}

static void add_f16(void *in, void *inout, int *n, MPI_Datatype *type)
{
    (void)type;
    add(in, inout, (size_t)*n, DTYPE_F16);
}

static void add_bf16(void *in, void *inout, int *n, MPI_Datatype *type)
{
    (void)type;
    add(in, inout, (size_t)*n, DTYPE_BF16);
}

void half_types_open(MPI_Datatype *type, MPI_Op *sum, enum dtype format)
{
    MPI(MPI_Type_contiguous(2, MPI_BYTE, type));
    MPI(MPI_Type_commit(type));
    MPI(MPI_Op_create(format == DTYPE_F16 ? add_f16 : add_bf16, 1, sum));
}

void half_types_close(MPI_Datatype *type, MPI_Op *sum)
{
    MPI(MPI_Op_free(sum));
    MPI(MPI_Type_free(type));
}
