// carry.c - does the calls of carry.h with a real MPI.

#include "message/carry.h"

#include "base/base.h"
#include "message/mpi_call.h"

#include <limits.h>

void *carry_buffer(size_t bytes)
{
    return mem_alloc(bytes, 1);
}

void carry_free(void *buffer)
{
    mem_free(buffer);
}

void carry_send(const void *data, size_t bytes, int rank, MPI_Request *r)
{
    CHECK(bytes <= INT_MAX);
    MPI(MPI_Isend(data, (int)bytes, MPI_BYTE, rank, CARRY_DATA, MPI_COMM_WORLD,
                  r));
}

void carry_receive(void *buffer, size_t bytes, int rank, MPI_Request *r)
{
    CHECK(bytes <= INT_MAX);
    MPI(MPI_Irecv(buffer, (int)bytes, MPI_BYTE, rank, CARRY_DATA,
                  MPI_COMM_WORLD, r));
}

int carry_wait(MPI_Request *r, int n, uint64_t until_ns,
               const atomic_bool *wake, MPI_Status *status)
{
    uint64_t start = now_ns();
    for (;;) {
        int which, flag;
        MPI(MPI_Testany(n, r, &which, &flag, status));
        if (flag && which != MPI_UNDEFINED)
            return which;
        if (now_ns() >= until_ns || atomic_load(wake))
            return -1;
        mpi_nap(start);
    }
}
