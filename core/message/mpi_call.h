// mpi_call.h - what every caller of MPI needs: a check of each call, and a rest
// between two tests of what is not complete.

#ifndef MESSAGE_MPI_CALL_H
#define MESSAGE_MPI_CALL_H

#include <mpi.h>
#include <stdint.h>

// MPI(MPI_Isend(...)): stop every rank, with file and line, if it fails.
#define MPI(call) mpi_check((call), __FILE__, __LINE__, #call)
void mpi_check(int code, const char *file, int line, const char *call);

// Between two tests of what is not complete: give the core away, sleeping
// longer (to 200 us) the longer nothing has come. `since` as of now_ns().
void mpi_nap(uint64_t since);

#endif
