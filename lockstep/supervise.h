// supervise.h - the processes of one job: started, listened to, ended together.
//
//     job_open, job_start (servers), job_answer (their endpoints),
//     job_start (workers), job_run, job_close
//
// Each child has a process group of its own and dies with us (PDEATHSIG). What
// it prints goes to the log with its name in front; worker 0's lines, and
// those of servers, also to the terminal. The first failure ends the job:
// SIGTERM to all, SIGKILL after a grace period; strays that children left
// behind come to us (subreaper) and are killed as well.

#ifndef LOCKSTEP_SUPERVISE_H
#define LOCKSTEP_SUPERVISE_H

#include "config/mesh.h"

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

struct progress;
struct job;
struct job_again;

enum { JOB_NAME = 24 };

struct job_config {
    int children;                  // at most so many will be started
    const char *log_path;          // "" for no log
    struct progress *progress;     // borrowed
    double grace_s;                // between SIGTERM and SIGKILL
    bool elastic;                  // go on while one worker lives
    const struct job_again *again; // of a worker that died then; NULL: never
    // Under mpirun: how many ranks shall say something, anything, within so
    // many seconds of its start. Open MPI's start has no deadline of its own.
    // 0: no limit.
    int ranks;
    double start_s;
    const struct mesh *mesh; // of the workers: where a rank is; borrowed
};

// A worker of an elastic job died while the others go on.
struct job_again {
    // The seconds until it is started again; below 0: it is not. *why, which
    // says how it died, then says that as well.
    double (*wanted)(void *ctx, int rank, char *why, size_t size);
    int (*start)(void *ctx, struct job *j, int rank); // job_start(); -1: fail()
    void *ctx;
};

enum job_kind {
    JOB_WORKER, // the job ends when all of these have
    JOB_SERVER, // lives as long as workers do
    JOB_MPIRUN, // stands for all workers, and servers behind them; tags their
                // lines with their ranks
};

struct job_child {
    enum job_kind kind;
    int rank;               // of a worker or server among its kind; of mpirun:
                            // how many are workers; 0: all
    char *const *argv;      // NULL-terminated; argv[0] a path, or in PATH
    const cpu_set_t *cores; // NULL: any
    const char *host;       // emulated (net.h) that it runs on; NULL: this one
    bool watched; // its standard input stays open for as long as we live
};

// 0, or -1 after fail().
int job_open(struct job **j, const struct job_config *c);

// In place of a worker of that rank that died, if there is one. 0, or -1 after
// fail().
int job_start(struct job *j, const struct job_child *child);

// Wait until the child started last prints a line that begins with `mark`, and
// copy the rest of that line. -1 after fail() when it ends, or does not within
// `seconds`.
int job_answer(struct job *j, const char *mark, double seconds, char *out,
               size_t size);

// Until every worker is done. Returns 0; 128 + the signal when we were told to
// stop; -1 after fail() that names the first failure: by the error that the
// process printed (log_error()), else by its exit code or signal and last line.
int job_run(struct job *j);

// Whether a process ended, or stayed silent, without an error of its own, so
// that the log may tell more than the message.
bool job_crashed(const struct job *j);

// Ends what still runs.
void job_close(struct job **j);

#endif
