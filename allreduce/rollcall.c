// rollcall.c - finds the ranks for which a collective waits.

#include "allreduce/rollcall.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "message/mpi_call.h"

#include <stdio.h>

enum { TAG = 2 };

static void listen_to(struct rollcall *c, int r)
{
    struct rollcall_member *m = &c->members[r];
    MPI(MPI_Irecv(&m->heard, 1, MPI_INT64_T, r, TAG, c->comm, &m->hearing));
}

int rollcall_open(struct rollcall *c, MPI_Comm comm, const int *ranks)
{
    *c = (struct rollcall){.comm = comm, .ranks = ranks};
    MPI(MPI_Comm_rank(comm, &c->rank));
    MPI(MPI_Comm_size(comm, &c->world));
    c->members = mem_alloc((size_t)c->world, sizeof *c->members);
    if (!c->members)
        return -1;
    for (int r = 0; r < c->world; r++) {
        c->members[r].hearing = c->members[r].saying = MPI_REQUEST_NULL;
        if (r != c->rank)
            listen_to(c, r);
    }
    return 0;
}

void rollcall_close(struct rollcall *c)
{
    for (int r = 0; c->members && r < c->world; r++) {
        struct rollcall_member *m = &c->members[r];
        if (m->hearing != MPI_REQUEST_NULL) {
            MPI(MPI_Cancel(&m->hearing));
            MPI(MPI_Request_free(&m->hearing));
        }
        if (m->saying != MPI_REQUEST_NULL)
            MPI(MPI_Request_free(&m->saying));
    }
    mem_free(c->members);
    *c = (struct rollcall){0};
}

void rollcall_say(struct rollcall *c, int64_t number)
{
    for (int r = 0; r < c->world; r++) {
        struct rollcall_member *m = &c->members[r];
        int idle = 0;
        if (r == c->rank)
            continue;
        // If the last number to r has not arrived, r does not read now: skip
        // it.
        MPI(MPI_Test(&m->saying, &idle, MPI_STATUS_IGNORE));
        if (!idle)
            continue;
        m->said = number;
        MPI(MPI_Isend(&m->said, 1, MPI_INT64_T, r, TAG, c->comm, &m->saying));
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
            MPI(MPI_Test(&c->members[r].hearing, &flag, MPI_STATUS_IGNORE));
            here = flag && c->members[r].heard >= number;
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
