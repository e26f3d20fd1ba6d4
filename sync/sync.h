// sync.h - how the workers agree on the next parameters.
//
// A worker opens one backend, calls sync_bcast() once, and then in every step
//
//     sync_ready(s, 0), sync_ready(s, 1) ...   as backward fills each bucket
//     sync_step(s, &in, &out)                  when backward is done
//
// When sync_step() returns 0, params on this worker are the next parameters.
// Who averages, who runs the optimiser and what travels on the wire is the
// backend's business. Nothing above this file may ask.

#ifndef SYNC_SYNC_H
#define SYNC_SYNC_H

#include "config/settings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cluster;      // who is rank 0..world-1; control-plane barrier and sum
struct device;       // allocate, copy, add, events: CPU or CUDA
struct optim_config; // plain data, so a server can be told it in one message
struct spans;        // telemetry: where a backend records what it does
struct half_copy;    // the 16-bit weights that a model multiplies by
struct stage;        // host copies of a GPU's vectors, for most backends

struct bucket {
    size_t off, n; // a range of params and grads, in elements
};

// What every backend is given. Borrowed: the caller outlives the backend.
struct sync_job {
    struct cluster *cluster;
    struct device *dev;    // where params and grads live
    float *params, *grads; // flat, same layout, n elements each
    size_t n;
    struct half_copy *copy; // of params, on dev: who updates them there may
                            // write it, too; or NULL
    const struct bucket *buckets; // tile [0,n) in the order backward fills them
    int nbuckets;
    const struct optim_config *optim;     // the rule; run it wherever you like
    const struct sync_settings *settings; // nothing in them is left to derive
    struct spans *spans; // for what the backend's threads do; may be NULL
    double slowdown; // > 1: this worker is a straggler, so many times slower
    struct stage
        *stage; // the door's: params and grads are host copies; or NULL
};

struct sync_in {
    int step; // counts updates from 1: those applied so far, plus one
    float lr;
    float grad_scale; // 1 / (world * accumulation * loss scale)
    float clip;       // largest gradient norm allowed; 0 for no limit
};

struct sync_out {
    float grad_norm; // of the mean gradient, before clipping
    bool skipped;    // not finite, so nobody updated
    bool dropped;    // came too late (backup workers): it was not used
    int missed;      // further steps that the others made meanwhile: params
                     // are those after step + missed
    int lag;         // ssp, asp: updates by others between this worker's pull
                     // and its push; 0 elsewhere
    uint64_t update_began_ns, update_ended_ns; // where this worker updates
    // The time by which slowdown lengthened this worker's own; 0, 0 without.
    uint64_t slowed_began_ns, slowed_ended_ns;
};

struct sync_stats {               // totals since open
    uint64_t bytes_out, bytes_in; // payload; the backend counts these
    uint64_t head_out, head_in;   // headers and control; the backend, too
    uint64_t ready_ns, step_ns;   // trainer held up; sync.c measures these
};

struct sync {
    const struct sync_ops *ops;
    struct sync_job job;
    struct sync_stats stats;
    const char *transport; // what carries the bytes: ops' unless open() says
    int next_bucket;  // sync.c checks the order of calls
    bool overlap;     // false: buckets wait for the whole backward pass
    uint64_t calls;   // of sync_step
    uint64_t left_ns; // when the last step returned
    uint64_t joined;  // updates that the group had made before this worker
                      // came, of a job that takes in workers as it runs
    struct sync_fault fault;
    struct stage *stage;
    void *state; // ops->state_size zeroed bytes; sync.c frees it
};

// A backend is one constant of this type. Every function returns 0, or -1
// after fail("what went wrong"). open() may fail half-way; close() follows.
struct sync_ops {
    const char *name;      // --sync=NAME
    const char *help;      // one line for --help
    const char *transport; // what carries the bytes; NULL: none travel
    bool on_device; // reads and writes the device's memory itself; others are
                    // given host copies of a GPU's (sync/stage.h)
    size_t state_size;
    // Optional: of several backends of one name, is this the one for the job? 1,
    // 0, or -1 after fail(). All workers call it, and get the same answer.
    int (*suits)(const struct sync_job *job);
    int (*open)(struct sync *s);
    // Optional: training began at zero_ns of this process's clock, for processes
    // of the backend's own, which record too.
    int (*clock)(struct sync *s, uint64_t zero_ns);
    int (*bcast)(struct sync *s);        // every worker's params := worker 0's
    int (*ready)(struct sync *s, int b); // optional; must not block
    int (*step)(struct sync *s, const struct sync_in *in, struct sync_out *out);
    // The optimiser's state as whole vectors of n elements in parameter order,
    // on worker 0 (NULL elsewhere): a checkpoint made under one backend and
    // world resumes under any other.
    int (*get_state)(struct sync *s, float *const *slots);
    int (*set_state)(struct sync *s, const float *const *slots);
    void (*close)(struct sync *s); // optional; must accept zeroed state
};

#ifdef __cplusplus
extern "C" {
#endif

// NULL after fail(). Copies *job; what it points to outlives the backend.
struct sync *sync_open(const struct sync_ops *ops, const struct sync_job *job);

// Each returns 0, or -1 after fail().
int sync_bcast(struct sync *s);
int sync_clock(struct sync *s, uint64_t zero_ns);
int sync_ready(struct sync *s, int b);
int sync_step(struct sync *s, const struct sync_in *in, struct sync_out *out);
int sync_get_state(struct sync *s, float *const *slots);
int sync_set_state(struct sync *s, const float *const *slots);
void sync_close(struct sync **s); // leaves the group, frees, sets *s to NULL

#ifdef __cplusplus
}
#endif

#endif
