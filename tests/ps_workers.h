// ps_workers.h - forked workers of parameter servers, for tests: they train on
// gradients of one and record in shared memory how far they came.

#ifndef TESTS_PS_WORKERS_H
#define TESTS_PS_WORKERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { PS_WORKERS_MOST = 16, PS_WORKERS_N = 3000 };

struct ps_progress {
    atomic_int step[PS_WORKERS_MOST]; // done by each worker
    atomic_int last; // where ps_workers.steps is 0; 0: not yet known
    struct {
        int rc;
        uint64_t joined, hash;
        int taken, dropped; // steps; of them, those that came too late
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
    int slow_us;  // a longer pause of rank 0
    int meet;     // all wait for all after each so many steps; 0: never
    bool late;    // rank 0 begins a step once all others wait for it
    size_t n;     // parameters; 0: PS_WORKERS_N
    int slice_kb; // 0: 1
};

// Shared memory for this process and the workers it forks; never NULL.
struct ps_progress *ps_progress_make(void);

// Fork worker `rank`. Its end is recorded once it has been joined.
pid_t ps_workers_start(const struct ps_workers *j, int rank);

// Where steps is 0: the workers take 50 steps more than rank 0 has taken, and
// end; they must not be further than that from each other.
void ps_workers_finish(const struct ps_workers *j);

// Wait until the worker has done `step`; until its process has ended. Fail the
// test where that takes too long.
void ps_workers_await(const struct ps_workers *j, int rank, int step);
void ps_workers_join(pid_t pid);

#endif
