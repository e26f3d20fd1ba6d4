// mpi_call.c - checks the result of a call of MPI; naps between two tests.

#include "message/mpi_call.h"

#include "base/base.h"

#include <sched.h>

void mpi_check(int code, const char *file, int line, const char *call)
{
    if (code == MPI_SUCCESS)
        return;
    char text[MPI_MAX_ERROR_STRING] = "";
    int len;
    MPI_Error_string(code, text, &len);
    log_line("%s:%d: %s: %s", file, line, call, text);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

void mpi_nap(uint64_t since)
{
    uint64_t idle = now_ns() - since;
    if (idle < 50000) // a small message takes less time than a sleep
        sched_yield();
    else
        sleep_ns(idle < 2000000 ? 20000 : 200000);
}
