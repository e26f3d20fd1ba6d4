// workload.h - a worker that trains a GPT-2 on random tokens, to be measured.
// Its vectors, buckets and update rule are those of the trainer.

#pragma once

#include "model/model.h"
#include "optim/optim.h"
#include "sync/sync.h"

#include <time.h>

// The settings of a bench's row.
struct workload_case {
    const char *name;
    struct model_config config;
    int batch, tokens; // of a step
    enum dtype precision;
    int threads;
    const char *device; // NULL: cpu
    bool tf32;
    int tune;   // algorithms to time for each shape of product; 0: none
    bool cudnn; // on a GPU, in 16 bits: attention by cuDNN
};

struct workload {
    struct workload_case is;
    size_t n; // parameters
    float *params, *grads;
    int32_t *x, *y;
    struct optim_config *optim;
    struct bucket *buckets;
    int nbuckets, filled; // filled: buckets of this step that are complete
    struct device *dev;
    struct cluster *cluster;       // of one worker
    struct sync_settings settings; // of `local`
    struct model *model;
    struct sync *local;
    struct sync *sync; // of the next steps: `local`, or another
    int steps;         // done so far
};

// Opens everything for a case. Returns 0, or -1 after fail(), for example if
// memory runs out. Call workload_close() in both cases.
int workload_open(struct workload *s, const struct workload_case *c);
void workload_close(struct workload *s);

// Opens backend `row`, with strategy `ops` over the first of `carriers` (NULL:
// none) that can run, for the workload's vectors. Writes the backend's default
// settings to *set, which must stay valid until the backend is closed. The
// parameters become worker 0's. The caller closes the backend with
// sync_close(). Returns NULL after fail().
struct sync *workload_sync(struct workload *s, struct sync_settings *set,
                           const struct backend *row,
                           const struct sync_ops *ops,
                           const struct group_ops *const *carriers,
                           struct cluster *cluster);

// Runs one whole step; after an error it stops the program.
struct workload_seconds {
    double compute; // forward and backward
    double update;  // clipping, AdamW and, in 16 bits, the copy of the weights
};
struct workload_seconds workload_step(struct workload *s);

// The time in seconds. With one thread it is this thread's processor time, so
// that other programs of a busy machine do not count; else the wall clock.
static inline double workload_clock(int threads)
{
    struct timespec t;
    clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
