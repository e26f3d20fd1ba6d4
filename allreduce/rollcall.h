// rollcall.h - who is waiting too?
//
// A collective that does not end does not say because of whom. Half-way to the
// deadline every member that waits tells all others how far it has come, by a
// number that grows. When the deadline passes, those are missing that have not
// said the number that is waited for, or a later one.

#ifndef ALLREDUCE_ROLLCALL_H
#define ALLREDUCE_ROLLCALL_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

struct rollcall {
    MPI_Comm comm;    // borrowed
    const int *ranks; // in the job, of comm's members (cluster.h); borrowed
    int rank, world;
    int64_t *heard, *said;         // each rank's latest number, in and out
    MPI_Request *hearing, *saying; // one each a rank
};

// `ranks`: as a cluster's. 0, or -1 after fail().
int rollcall_open(struct rollcall *c, MPI_Comm comm, const int *ranks);
void rollcall_close(struct rollcall *c);

void rollcall_say(struct rollcall *c, int64_t number);

// The ranks of the job that did not say `number` or more, as text: "rank 2, 3";
// "" for none.
char *rollcall_missing(struct rollcall *c, int64_t number, char *out,
                       size_t size);

#endif
