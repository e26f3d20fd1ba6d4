// subject.h - one worker that trains a GPT-2 on random tokens: what is
// measured. Its vectors, buckets and rule are a trainer's.

#ifndef BENCH_SUBJECT_H
#define BENCH_SUBJECT_H

#include "model/model.h"
#include "optim/optim.h"
#include "sync/sync.h"

#include <time.h>

// What a row of the bench is about.
struct subject_case {
    const char *name;
    struct model_config config;
    int batch, tokens; // of a step
    enum dtype precision;
    int threads;
    const char *device; // NULL: cpu
    bool tf32;
    int tune; // algorithms timed a shape of product; 0: none
};

struct subject {
    struct subject_case is;
    size_t n; // parameters
    float *params, *grads;
    int32_t *x, *y;
    struct optim_config *optim;
    struct bucket *buckets;
    int nbuckets, filled; // of this step's buckets
    struct device *dev;
    struct cluster *cluster;       // of one
    struct sync_settings settings; // of `local`
    struct model *model;
    struct sync *local;
    struct sync *sync; // of the steps to come: `local`, or another's
    int steps;         // made so far
};

// 0, or -1 after fail(): mostly memory; subject_close() follows either way.
int subject_open(struct subject *s, const struct subject_case *c);
void subject_close(struct subject *s);

// A backend, a strategy over one of its carriers (NULL: none), for the
// subject's vectors, with its default settings, which are written to `set` and
// read until it is closed; params become worker 0's. The caller closes it. NULL
// after fail().
struct sync *subject_sync(struct subject *s, struct sync_settings *set,
                          const struct backend *row, const struct sync_ops *ops,
                          const struct group_ops *const *carriers,
                          struct cluster *cluster);

// One whole step, or death with a message; `compute` is the time of forward and
// backward, `update` of clipping, AdamW and, in bf16, the copy of the weights.
void subject_step(struct subject *s, double *compute, double *update);

// Seconds: of this thread's processor time where it works alone, so that a busy
// machine's other programs do not count; else by the wall clock.
static inline double subject_clock(int threads)
{
    struct timespec t;
    clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
