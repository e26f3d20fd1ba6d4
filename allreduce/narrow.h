// narrow.h - sums in fp16 and bf16 for MPI, which has no such types.

#ifndef ALLREDUCE_NARROW_H
#define ALLREDUCE_NARROW_H

#include "base/half.h"

#include <mpi.h>

// A type of two bytes, and a sum that adds two of them in fp32 and rounds once.
void narrow_open(MPI_Datatype *type, MPI_Op *sum, enum dtype format);
void narrow_close(MPI_Datatype *type, MPI_Op *sum);

#endif
