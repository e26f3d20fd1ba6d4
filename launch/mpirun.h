// mpirun.h - reads the output of Open MPI's mpirun: which rank printed a line,
// and which rank failed first.

#pragma once

#include "launch/child.h"
#include "launch/openmpi.h"

enum { MPIRUN_RANKS = 4096 };

// The rank that mpirun named first, and how it ended.
struct mpirun_failure {
    int rank; // the rank + 1; 0: none yet
    int code, signal;
};

struct mpirun_report {
    int workers; // ranks from this number on are servers; 0: there are none
    const struct openmpi *words; // the words of this version
    struct mpirun_limits most;   // all 0: no limits
    struct mpirun_failure failure;
    char (*last)[CHILD_LAST]; // last line of each rank; allocated when needed
    char said[CHILD_LAST];    // mpirun's own first paragraph, as one line
    bool said_all;            // that paragraph has ended
    // What a rank has said (base/beat.h), and the time since its last line.
    bool here[MPIRUN_RANKS], done[MPIRUN_RANKS];
    double quiet_s[MPIRUN_RANKS];
    bool began[MPIRUN_RANKS]; // the rank has made progress
};

// Reads a line. If a rank printed it ("[1,3]<stdout>:text", with mpirun
// --tag-output), moves *text behind the tag and behind log_line()'s "[3] ",
// stores the rank and the stream (0: stdout, 1: stderr), and returns true. Else
// mpirun itself printed the line: keeps what it says about a failure, and
// returns false.
bool mpirun_line(struct mpirun_report *m, char **text, int *rank, int *stream);

// Call it when a rank makes progress; see child_begin().
void mpirun_begin(struct mpirun_report *m, int rank);

// Writes the name of a rank: "rank 1", or "server 0" for the first rank behind
// the workers.
void mpirun_name(const struct mpirun_report *m, int rank, char name[JOB_NAME]);

// Returns whether the line is one of base/beat.h, and notes what it says.
bool mpirun_beat(struct mpirun_report *m, int rank, const char *text);

// `seconds` have passed. Returns whether ranks have been silent for longer than
// the limits allow. If so, writes an error that names them.
bool mpirun_late(struct mpirun_report *m, double seconds, char *why,
                 size_t size);

// mpirun has ended. Returns whether ranks are missing that never joined the
// others: after an error of its own while it starts them, Open MPI may end with
// exit status 0. If so, writes an error that names them.
bool mpirun_lacks(const struct mpirun_report *m, char *why, size_t size);

// Returns whether all ranks have said that they are done.
bool mpirun_done(const struct mpirun_report *m);

// Says whose failure ended the job. If mpirun named a rank, replaces name,
// status (as of waitpid()) and last line by that rank's. Otherwise only *last
// becomes mpirun's own message. *last points into *m.
void mpirun_cause(const struct mpirun_report *m, char name[JOB_NAME],
                  int *status, const char **last);
