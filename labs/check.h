// check.h - what a lab's grade.c is written against: tests, and runs of the
// student's functions on a virtual cluster.
//
// A test runs the functions, compares what came out with what grade.c works out
// by itself, and says one sentence about the first difference. It never calls
// the student's functions to know what is right, and it never counts bytes or
// seconds by what they say: the cluster counts.

#ifndef LABS_CHECK_H
#define LABS_CHECK_H

#include "labs/lab.h"

#include "virtual/virtual.h"

struct lab_case; // a test under way

struct lab_test {
    const char *name;
    int points;
    void (*run)(struct lab_case *k);
    const char *needs; // a test that must pass before; NULL: none
    const char *hint;
};

// Every grade.c defines one.
struct lab_about {
    int number;
    const char *name;
    const char *file;             // what the student hands in
    const char *functions;        // that it defines: "lab_exchange ring_bytes"
    int floor;                    // points of the skeleton
    const struct lab_test *tests; // ends with a name of NULL
};
extern const struct lab_about lab_about;

// A cluster to run on.
struct lab_world {
    int workers, servers;
    int threads;                 // 0, 1: one a rank; 2: two, on the same links
    double alpha_s, bytes_per_s; // 0, 0: 20 us and 1 Gbit/s
    size_t eager;                // SIZE_MAX: no send waits for its receiver
    double deadline_s;           // 0: none
    uint64_t seed;
    struct virtual_kill kill;
    const double *slow;
};

typedef int lab_body(struct lab *l, void *arg);

struct lab_run {
    const struct virtual_result *v;
    // By rank, those of thread 1 behind those of thread 0: the rank that it
    // missed first; -1: none.
    const int *missing;
};

// Run `body` on every rank of the world. The result is the test's until its
// next run. Where not even that worked: NULL, and the test has failed.
const struct lab_run *lab_virtual(struct lab_case *k, const struct lab_world *w,
                                  lab_body *body, void *arg);

// One thread of a rank tells another a number, and hears it. Telling never
// waits.
int lab_tell(struct lab *l, int thread, int number);
int lab_hear(struct lab *l, int thread, int *number);

// Memory for n objects of `size` bytes, all 0, until the test ends. NULL where
// there is none, and then the test has failed.
void *lab_memory(struct lab_case *k, size_t n, size_t size);

// Free what this rank was given by lab_alloc(): between two calls of the
// student's functions.
void lab_release(struct lab *l);

// Note a condition of the test. The first that does not hold fails it, and is
// what the student reads. Returns `ok`.
bool lab_want(struct lab_case *k, bool ok, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
bool lab_failed(const struct lab_case *k); // there was one

// A condition on speed: `is` seconds are at most 1.05 times `ought`. Up to
// twice as long a part of the points is left: the smallest of all that were
// asked for. Otherwise like lab_want().
bool lab_speed(struct lab_case *k, double is, double ought, const char *fmt,
               ...) __attribute__((format(printf, 4, 5)));

// All ranks came to an end and returned 0.
bool lab_clean(struct lab_case *k, const struct lab_run *run);

// A row of the student's run.csv: a value of this test, by workers and size.
void lab_record(struct lab_case *k, int workers, size_t n, const char *what,
                double value);

#endif
