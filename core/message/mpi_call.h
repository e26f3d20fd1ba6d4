// mpi_call.h - for every caller of MPI: a check of each call, and a nap between
// two tests of requests.

#pragma once

#include <mpi.h>
#include <stdint.h>

// MPI(MPI_Isend(...)): stops every rank, with file and line, if the call fails.
#define MPI(call) mpi_check((call), __FILE__, __LINE__, #call)
void mpi_check(int code, const char *file, int line, const char *call);

// Cancels a request, unless it is complete.
static inline void mpi_give_up(MPI_Request *r)
{
    if (*r == MPI_REQUEST_NULL)
        return;
    MPI(MPI_Cancel(r));
    MPI(MPI_Request_free(r));
}

// To be called between two tests of requests in a wait that began at `since`
// (now_ns()): first yields the core, later sleeps up to 200 us.
void mpi_nap(uint64_t since);
