// mpirun.h - reading Open MPI's mpirun: whose line it is, who failed first.

#ifndef LOCKSTEP_MPIRUN_H
#define LOCKSTEP_MPIRUN_H

#include "lockstep/child.h"
#include "lockstep/openmpi.h"

enum { MPIRUN_RANKS = 4096 };

struct mpirun_report {
    int workers; // ranks from here on are servers; 0: there are none
    const struct openmpi *words; // how it speaks
    struct openmpi_failure failure;
    char (*last)[CHILD_LAST]; // last line of each rank; allocated when needed
    char said[CHILD_LAST];    // its own first paragraph, in one line
    bool said_all;            // that paragraph has ended
    bool heard[MPIRUN_RANKS]; // who has said something
    bool began[MPIRUN_RANKS]; // who has made progress
};

// If *text is a line of a rank ("[1,3]<stdout>:text", mpirun --tag-output),
// move *text behind the tag (and log_line()'s), store whose and which stream it
// is, and return true. Else it is mpirun's own; what it says about failures is
// kept.
bool mpirun_line(struct mpirun_report *m, char **text, int *rank, int *stream);

// A rank makes progress; see child_begin().
void mpirun_begin(struct mpirun_report *m, int rank);

// "rank 1", or "server 0" for the first rank behind the workers.
void mpirun_name(const struct mpirun_report *m, int rank, char name[JOB_NAME]);

// "rank 1, server 0": of the first n ranks, those that have not said a word;
// how many there are.
int mpirun_silent(const struct mpirun_report *m, int n, char *out, size_t size);

// Whose failure ended the job, in place of mpirun's own name, status (as
// waitpid() has it) and last line: the rank's that mpirun named, or nobody's,
// then *last is what mpirun itself said.
void mpirun_cause(const struct mpirun_report *m, char name[JOB_NAME],
                  int *status, const char **last);

#endif
