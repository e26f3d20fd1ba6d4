// ps_workers.h - forked workers of parameter servers, for tests. They train
// with gradients of 1, and record their progress in shared memory.

#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { PS_WORKERS_MOST = 16, PS_WORKERS_N = 3000 };

struct ps_progress {
    atomic_int step[PS_WORKERS_MOST]; // the last step that each worker did
    atomic_int last; // if ps_workers.steps is 0: the last step; 0: not set yet
    struct {
        int rc;
        uint64_t joined, hash;
        int taken, dropped; // steps; how many of them came too late
        char why[512];
    } end[PS_WORKERS_MOST];
};

struct ps_workers {
    struct ps_progress *progress;
    int world;
    const char *opts, *endpoints, *curve;
    double timeout_s;
    int steps; // 0: until ps_workers_finish()
    int pause_us;
    int slow_us;  // added to the pause of rank 0
    int meet;     // after every `meet` steps all wait for all; 0: never
    bool late;    // rank 0 begins a step when all others wait where all meet
    size_t n;     // parameters; 0 means PS_WORKERS_N
    int slice_kb; // 0 means 1
};

// Allocates memory that this process shares with the workers it forks. Never
// NULL.
struct ps_progress *ps_progress_make(void);

// Forks worker `rank`, and returns its process id. progress->end[rank] is valid
// after ps_workers_join().
pid_t ps_workers_start(const struct ps_workers *j, int rank);

// Call this if steps is 0. Then the workers end 50 steps after the present step
// of rank 0. They must be less than 50 steps apart.
void ps_workers_finish(const struct ps_workers *j);

// Waits until the worker has done `step`, or until its process has ended. Fails
// the test if this takes more than a minute.
void ps_workers_await(const struct ps_workers *j, int rank, int step);
void ps_workers_join(pid_t pid);
