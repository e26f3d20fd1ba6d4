// rollcall.h - who is waiting too?
//
// A collective that does not end does not say because of whom. Half-way to the
// deadline every worker that waits tells all others which step it waits in;
// whoever has said nothing when the deadline passes is the one that is missing.

#ifndef ALLREDUCE_ROLLCALL_H
#define ALLREDUCE_ROLLCALL_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

struct rollcall {
    MPI_Comm comm; // borrowed
    int rank, world;
    int64_t *heard, *said;         // the latest step of each rank, in and out
    MPI_Request *hearing, *saying; // one each a rank
};

int rollcall_open(struct rollcall *c, MPI_Comm comm);
void rollcall_close(struct rollcall *c);

void rollcall_say(struct rollcall *c, int64_t step);

// The ranks that did not say `step`, as text: "rank 2, 3"; "" for none.
char *rollcall_missing(struct rollcall *c, int64_t step, char *out,
                       size_t size);

#endif
