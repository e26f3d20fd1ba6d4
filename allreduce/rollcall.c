// rollcall.c - finds the ranks for which a collective waits.

#include "allreduce/rollcall.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "message/mpi_call.h"

#include <stdio.h>

enum { TAG = 2 };

static void listen_to(struct rollcall *c, int r)
{
    MPI(MPI_Irecv(&c->heard[r], 1, MPI_INT64_T, r, TAG, c->comm,
                  &c->hearing[r]));
}

int rollcall_open(struct rollcall *c, MPI_Comm comm, const int *ranks)
{
    *c = (struct rollcall){.comm = comm, .ranks = ranks};
    MPI(MPI_Comm_rank(comm, &c->rank));
    MPI(MPI_Comm_size(comm, &c->world));
    size_t n = (size_t)c->world;
    c->heard = mem_alloc(n, sizeof *c->heard);
    c->said = mem_alloc(n, sizeof *c->said);
    c->hearing = mem_alloc(n, sizeof *c->hearing);
    c->saying = mem_alloc(n, sizeof *c->saying);
    if (!c->heard || !c->said || !c->hearing || !c->saying)
        return -1;
    for (int r = 0; r < c->world; r++) {
        c->hearing[r] = c->saying[r] = MPI_REQUEST_NULL;
        if (r != c->rank)
            listen_to(c, r);
    }
    return 0;
}

void rollcall_close(struct rollcall *c)
{
    for (int r = 0; c->saying && r < c->world; r++) {
        if (c->hearing[r] != MPI_REQUEST_NULL) {
            MPI(MPI_Cancel(&c->hearing[r]));
            MPI(MPI_Request_free(&c->hearing[r]));
        }
        if (c->saying[r] != MPI_REQUEST_NULL)
            MPI(MPI_Request_free(&c->saying[r]));
    }
    mem_free(c->saying);
    mem_free(c->hearing);
    mem_free(c->said);
    mem_free(c->heard);
    *c = (struct rollcall){0};
}

void rollcall_say(struct rollcall *c, int64_t number)
{
    for (int r = 0; r < c->world; r++) {
        int idle = 0;
        if (r == c->rank)
            continue;
        // If the last number to r has not arrived, r does not read now: skip
        // it.
        MPI(MPI_Test(&c->saying[r], &idle, MPI_STATUS_IGNORE));
        if (!idle)
            continue;
        c->said[r] = number;
        MPI(MPI_Isend(&c->said[r], 1, MPI_INT64_T, r, TAG, c->comm,
                      &c->saying[r]));
    }
}

char *rollcall_missing(struct rollcall *c, int64_t number, char *out,
                       size_t size)
{
    int used = 0;
    *out = '\0';
    for (int r = 0; r < c->world; r++) {
        bool here = r == c->rank;
        int flag = !here;
        while (flag && !here) { // older numbers come before the newest
            MPI(MPI_Test(&c->hearing[r], &flag, MPI_STATUS_IGNORE));
            here = flag && c->heard[r] >= number;
            if (flag)
                listen_to(c, r);
        }
        if (!here && used >= 0 && (size_t)used < size)
            used +=
                snprintf(out + used, size - (size_t)used, "%s%d",
                         used ? ", " : "rank ", cluster_job_rank(c->ranks, r));
    }
    return out;
}
