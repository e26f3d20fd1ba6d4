// workload.h - one worker that trains a GPT-2 on random tokens: what is
// measured. Its vectors, buckets and rule are a trainer's.

#ifndef BENCH_WORKLOAD_H
#define BENCH_WORKLOAD_H

#include "model/model.h"
#include "optim/optim.h"
#include "sync/sync.h"

#include <time.h>

// What a row of the bench is about.
struct workload_case {
    const char *name;
    struct model_config config;
    int batch, tokens; // of a step
    enum dtype precision;
    int threads;
    const char *device; // NULL: cpu
    bool tf32;
    int tune;   // algorithms timed a shape of product; 0: none
    bool cudnn; // on a GPU, 16 bits: attention by cuDNN
};

struct workload {
    struct workload_case is;
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

// 0, or -1 after fail(): mostly memory; workload_close() follows either way.
int workload_open(struct workload *s, const struct workload_case *c);
void workload_close(struct workload *s);

// A backend, a strategy over one of its carriers (NULL: none), for the
// workload's vectors, with its default settings, which are written to `set` and
// read until it is closed; params become worker 0's. The caller closes it. NULL
// after fail().
struct sync *workload_sync(struct workload *s, struct sync_settings *set,
                           const struct backend *row,
                           const struct sync_ops *ops,
                           const struct group_ops *const *carriers,
                           struct cluster *cluster);

// One whole step, or death with a message; `compute` is the time of forward and
// backward, `update` of clipping, AdamW and, in bf16, the copy of the weights.
void workload_step(struct workload *s, double *compute, double *update);

// Seconds: of this thread's processor time where it works alone, so that a busy
// machine's other programs do not count; else by the wall clock.
static inline double workload_clock(int threads)
{
    struct timespec t;
    clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
