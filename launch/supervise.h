// supervise.h - starts the processes of one job, reads their output, and ends
// them together.
//
//     job_open, job_start (servers), job_answer (their endpoints),
//     job_start (workers), job_run, job_close
//
// Each child has a process group of its own, and is killed if this process dies
// (PDEATHSIG). Its output is written to the log with its name before each line.
// The lines of worker 0, and what servers write to stderr, are also printed.
// The first failure ends the job: all children get SIGTERM, and SIGKILL after a
// grace period. Processes that children left behind become our children
// (subreaper) and are killed, too.

#pragma once

#include "config/mesh.h"

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

struct progress;
struct scratch;
struct job;
struct job_again;

enum { JOB_NAME = 24 };

// How long the ranks of mpirun may print nothing. Open MPI waits for ever for a
// rank that does not start, and hands nothing on once mpirun itself is frozen.
struct mpirun_limits {
    int ranks;      // that mpirun starts
    double start_s; // before a rank has joined the others; 0: no limits at all
    double quiet_s; // after that; then a rank prints a line a second
};

struct job_config {
    int children;                  // the largest number of children
    const char *log_path;          // "": no log
    struct progress *progress;     // borrowed
    double grace_s;                // between SIGTERM and SIGKILL
    double stopped_s;              // a child that a signal has stopped for
                                   // longer is killed; 0: never
    bool elastic;                  // go on while one worker lives
    const struct job_again *again; // restarts dead workers; NULL: never
    struct mpirun_limits mpirun;   // if mpirun starts the workers
    const struct mesh *mesh; // of the workers, for error messages; borrowed
    // The last step that a worker has recorded, which may be later than the one
    // that worker 0 last reported. NULL: the reported one counts.
    long (*last_step)(void *ctx);
    void *ctx; // of last_step
};

// Starts a dead worker of an elastic job again, while other workers go on.
struct job_again {
    // Returns the seconds until it is started again; below 0: never. `lost`: it
    // died without an error of its own, before it made a step. Appends the
    // decision to *why, which says why the worker died.
    double (*wanted)(void *ctx, int rank, bool lost, char *why, size_t size);
    // Starts it by job_start(). 0, or -1 after fail().
    int (*start)(void *ctx, struct job *j, int rank);
    void *ctx;
};

enum job_kind {
    JOB_WORKER, // the job ends when all workers have ended
    JOB_SERVER, // runs as long as workers do
    JOB_MPIRUN, // starts all workers, and servers behind them, and tags their
                // lines with their ranks
};

struct job_child {
    enum job_kind kind;
    int rank;                // of a worker or server among its kind; of mpirun:
                             // the number of workers, 0: all ranks are workers
    char *const *argv;       // NULL-terminated; argv[0] a path, or in PATH
    const cpu_set_t *cores;  // NULL: any
    const char *host;        // its emulated host (netns.h); NULL: this host
    bool watched;            // its standard input stays open while we live
    struct scratch *scratch; // of mpirun; the job takes it if it starts
};

// Opens a job without children. The caller closes *j in both cases. 0, or -1
// after fail().
int job_open(struct job **j, const struct job_config *c);

// Starts a child. It replaces a dead worker of the same rank, if there is one.
// 0, or -1 after fail().
int job_start(struct job *j, const struct job_child *child);

// Waits until the child that was started last prints a line that begins with
// `mark`, and copies the rest of that line to `out`. 0, or -1 after fail() if
// the child ends or `seconds` pass before that.
int job_answer(struct job *j, const char *mark, double seconds, char *out,
               size_t size);

// Waits until every worker is done. Returns 0; 128 + the signal if a signal
// stopped the job; or -1 after fail() with the first failure: the error that
// the process printed (log_error()), or its exit code or signal and last line.
int job_run(struct job *j);

// Returns whether a process failed, or printed nothing, without an error of its
// own. Then the log may tell more than the message.
bool job_crashed(const struct job *j);

// Returns whether a signal to this process has stopped the job.
bool job_stopped(const struct job *j);

// Ends all processes that still run, and frees the job.
void job_close(struct job **j);
