// check.h - the interface for a lab's grade.c: tests, and runs of the student's
// functions on a virtual cluster.
//
// A test runs the functions, compares their results with those that grade.c
// computes by itself, and says one sentence about the first difference. It
// never asks the student's functions for expected results, bytes or seconds:
// the cluster counts bytes and seconds.

#ifndef LABS_CHECK_H
#define LABS_CHECK_H

#include "labs/lab.h"

#include "virtual/virtual.h"

struct lab_case; // a running test

struct lab_test {
    const char *name;
    int points;
    void (*run)(struct lab_case *k);
    const char *needs; // the test that must pass first; NULL: none
    const char *hint;
};

// Describes the lab. Every grade.c defines one.
struct lab_about {
    int number;
    const char *name;
    const char *file;      // that the student hands in
    const char *functions; // that it defines: "lab_exchange ring_bytes"
    int floor;             // points of the skeleton
    int frame; // the most bytes of a function on the stack; 0: any number. A
               // rank's stack has 16 times as many.
    const struct lab_test *tests; // ends with a name of NULL
};
extern const struct lab_about lab_about;

// A virtual cluster. seed, kill and slow are those of struct virtual_setup.
struct lab_world {
    int workers, servers;
    int threads;                 // of a rank: 0 or 1: one; 2: two, one link
    double alpha_s, bytes_per_s; // 0, 0: 20 us and 1 Gbit/s
    size_t eager;                // SIZE_MAX: no send waits for its receiver
    double deadline_s;           // of a call; 0: none
    uint64_t seed;
    struct virtual_kill kill;
    const double *slow;
};

// The function that each rank runs. Returns 0 or -1.
typedef int lab_body(struct lab *l, void *arg);

struct lab_run {
    const struct virtual_result *v;
    // For each rank, first all threads 0, then all threads 1: the rank that it
    // named first in lab_missing(); -1: none.
    const int *missing;
};

// Runs `body` on every rank of the world. The result belongs to the test, and
// stays valid until the test's next run. Returns NULL, and the test has failed,
// if the run could not begin.
const struct lab_run *lab_virtual(struct lab_case *k, const struct lab_world *w,
                                  lab_body *body, void *arg);

// Sends a number to thread `thread` of the same rank; receives one from it.
// lab_tell() never waits. Both return 0 or -1.
int lab_tell(struct lab *l, int thread, int number);
int lab_hear(struct lab *l, int thread, int *number);

// Begins the next hidden case, and returns whether there are any: `labs/grade
// --seed N` draws them. The public cases run in any case, before them.
bool lab_hidden(struct lab_case *k);

// A random number of this hidden case, from `least` to `most`: a function of
// seed, test, case and bounds, whatever the order of calls.
size_t lab_pick(const struct lab_case *k, size_t least, size_t most);

// Random number `i` of this hidden case, below `n`.
size_t lab_draw(const struct lab_case *k, uint64_t i, size_t n);

// The cluster of a hidden case. All tests draw from the same networks, so that
// no network tells a file which test runs.
struct lab_world lab_drawn(const struct lab_case *k, int workers);

// Allocates n objects of `size` bytes, all 0. They are freed when the test
// ends. Returns NULL, and the test has failed, if there is no memory.
void *lab_memory(struct lab_case *k, size_t n, size_t size);

// Frees all lab_alloc() memory of this rank. Called between two calls of the
// student's functions.
void lab_release(struct lab *l);

// Notes a condition of the test. If it does not hold, the test has failed; the
// student reads the first such message. Returns `ok`.
bool lab_want(struct lab_case *k, bool ok, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

// After the first failure of a test without a cluster: where to write what the
// student should see of it, as text. NULL: nowhere, or it is written already.
FILE *lab_log(struct lab_case *k);

// Whether the test has no points any more, so that further cases change
// nothing. A test that was only too slow may lose more.
bool lab_failed(const struct lab_case *k);

// A condition on speed: `is` must be at most 1.05 times `ought`, in seconds.
// From 1.05 to 2 times, the share of the points falls from 1 to 0. The smallest
// share of all conditions counts. Otherwise like lab_want().
bool lab_speed(struct lab_case *k, double is, double ought, const char *fmt,
               ...) __attribute__((format(printf, 4, 5)));

// Notes the condition that all ranks of the run ended and returned 0, and
// returns whether it holds. If run is NULL, it returns false.
bool lab_clean(struct lab_case *k, const struct lab_run *run);

// Adds a row to the student's run.csv: a value of this test, by workers and
// size.
void lab_record(struct lab_case *k, int workers, size_t n, const char *what,
                double value);

#endif
