// half_types.h - sums in fp16 and bf16 for MPI, which has no such types.

#pragma once

#include "base/half.h"

#include <mpi.h>

// Makes an MPI type of two bytes for `format`, and a sum that adds two such
// numbers in fp32 and rounds once. half_types_close() frees both.
void half_types_open(MPI_Datatype *type, MPI_Op *sum, enum dtype format);
void half_types_close(MPI_Datatype *type, MPI_Op *sum);
