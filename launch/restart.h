// restart.h - decides whether a job that failed is started again, from its
// newest checkpoint.
//
//     restarts=N    after a failure the launcher ends all processes, waits, and
//                   starts them again, at most N times
//
// It does the same for a dead worker, server or host: a checkpoint has all that
// any backend needs to continue. If the job fails twice after the same step, it
// is not started again, since it would fail again. A loss during the restart,
// before a new step, does not count as the same failure.
//
// In an elastic job only the dead worker is started again, while other workers
// go on. It gets the parameters from the servers, not from a checkpoint.

#pragma once

#include "config/config.h"

struct restart {
    int done;       // restarts so far
    long failed_at; // the last step that was done before the last failure
    int rank;       // the worker that failed then; -1: the whole job
};

// Returns the last step that any worker has done: the last one with a row.
long restart_last_step(const struct run *r);

// The job failed, and fail_message() says how. `lost`: a process was lost
// without an error of its own, before the job made a step. Returns whether to
// start the job again. If so, it has logged the restart and has waited, and *r
// has the changed settings of the next start. If not, fail_message() may say
// why not.
bool restart_wanted(struct restart *s, struct run *r, const char *log_path,
                    bool lost);

// A worker of an elastic job failed; why[] says how, and `lost` tells the same
// of this worker. Returns the seconds to wait before it is started again, and
// adds them to why[]. Below 0: do not start it again; why[] may say why.
double restart_worker_wanted(struct restart *s, struct run *r, int rank,
                             bool lost, char *why, size_t size);
