// restart.h - a job that failed is started again from its newest checkpoint.
//
//     restarts=N    after a failure the launcher ends what is left, waits, and
//                   starts every process again, at most N times
//
// Whatever died (a worker, a server, a host), the same is done: all backends
// begin from one folder, and a checkpoint holds all that they need. A failure
// that comes twice after the same step is no accident: the second is the last.
// In an elastic job a worker that died is started again by itself, while the
// others go on: it takes the parameters from the servers, not from a file.

#ifndef LOCKSTEP_RESTART_H
#define LOCKSTEP_RESTART_H

#include "config/config.h"

struct restart {
    int done;
    long failed_at; // the last step that was done before the last failure
    int rank;       // the worker that failed alone then; -1: the job
};

// The job failed, and fail_message() says how. Whether to start it again: then
// what happens is said, also in the log; the wait is over; and *r says how the
// next start differs. Else fail_message() may say why not.
bool restart_wanted(struct restart *s, struct run *r, const char *log_path);

// A worker of an elastic job failed, as why[] says. In how many seconds to
// start it again, which is added to why[]; below 0: not, and why[] may say why.
double restart_worker_wanted(struct restart *s, struct run *r, int rank,
                             char *why, size_t size);

#endif
