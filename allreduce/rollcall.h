// rollcall.h - finds the ranks for which a collective waits.
//
// A collective that does not end does not report which rank is missing. So
// half-way to the deadline every member that waits sends all others a number
// that says how many verbs it has begun. When the deadline passes, the missing
// ranks are those whose latest number is smaller than that of the verb.

#pragma once

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

struct rollcall {
    MPI_Comm comm;    // borrowed
    const int *ranks; // of comm's members in the job (cluster.h); borrowed
    int rank, world;
    struct rollcall_member {
        int64_t heard, said; // latest number from it, and to it
        MPI_Request hearing, saying;
    } * members; // by rank
};

// ranks: see struct cluster. All members call it. Returns 0, or -1 after
// fail().
int rollcall_open(struct rollcall *c, MPI_Comm comm, const int *ranks);
void rollcall_close(struct rollcall *c);

// Sends `number` to all other members.
void rollcall_say(struct rollcall *c, int64_t number);

// Writes the ranks of the job that have not sent `number` or more to out[size],
// such as "rank 2, 3"; "" if there are none. Returns out.
char *rollcall_missing(struct rollcall *c, int64_t number, char *out,
                       size_t size);
