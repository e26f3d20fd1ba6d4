// mpirun.h - reading Open MPI's mpirun: whose line it is, who failed first.

#ifndef LOCKSTEP_MPIRUN_H
#define LOCKSTEP_MPIRUN_H

#include "lockstep/child.h"

enum { MPIRUN_RANKS = 4096 };

struct mpirun_report {
    int workers; // ranks from here on are servers; 0: there are none
    int failed;  // rank + 1 that mpirun named; 0: none
    int code, signal;
    char (*last)[CHILD_LAST]; // last line of each rank; allocated when needed
};

// If *text is a line of a rank ("[1,3]<stdout>:text", mpirun --tag-output),
// move *text behind the tag, store whose and which stream it is, and return
// true. Else it is mpirun's own; what it says about failures is kept.
bool mpirun_line(struct mpirun_report *m, char **text, int *rank, int *stream);

// "rank 1", or "server 0" for the first rank behind the workers.
void mpirun_name(const struct mpirun_report *m, int rank, char name[JOB_NAME]);

// Replace name, how and last by the failed rank's where mpirun named one.
void mpirun_cause(const struct mpirun_report *m, char name[JOB_NAME],
                  char how[64], const char **last);

#endif
