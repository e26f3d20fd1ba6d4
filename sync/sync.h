// sync.h - how the workers agree on the next parameters.
//
// A worker opens one backend, calls sync_bcast() once, and then in every step
//
//     sync_ready(s, 0), sync_ready(s, 1) ...   as backward fills each bucket
//     sync_step(s, &in, &out)                  when backward is done
//
// When sync_step() returns 0, params on this worker are the next parameters;
// with copy_only job.copy is their 16-bit copy; sync_whole() completes them.
// With job.awaits they may still be on their way then: sync_await().
//
// A strategy may keep vectors in shards (sync_share()) and lend them, a block
// at a time: sync_take() before a block is read, sync_give() after. Then
// buckets are blocks, and every micro-batch hands all of them over.
//
// With a strategy that has merge() every worker updates by its own gradients;
// every settings.every steps, and after the last, parameters become one again.
//
// A backend is a strategy (who holds what, who updates: this contract) and, for
// most, a carrier (how vectors travel: group/group.h). Nothing above this file
// may ask which.

#ifndef SYNC_SYNC_H
#define SYNC_SYNC_H

#include "config/settings.h"
#include "group/group.h"
#include "optim/rule.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct backend;      // a way of agreeing, as plain data (config/backends.h)
struct cluster;      // who is rank 0..world-1; control-plane barrier and sum
struct device;       // allocate, copy, add, events: CPU or CUDA
struct optim_config; // plain data, so a server can be told it in one message
struct spans;        // telemetry: where a backend records what it does
struct half_copy;    // the 16-bit weights that a model multiplies by
struct copies;       // host copies of a GPU's vectors

struct bucket {
    size_t off, n; // a range of params and grads, in elements
};

// What every backend is given. Borrowed: the caller outlives the backend.
struct sync_job {
    const struct backend *backend; // its row of the table
    // Those that it may use, the best first, then NULL. None, or NULL: it needs
    // no carrier.
    const struct group_ops *const *carriers;
    struct cluster *cluster;
    struct device *dev;    // where params and grads live
    float *params, *grads; // flat, same layout, n elements each; NULL where
                           // the strategy lends them
    size_t n;
    enum dtype format;      // in which weights are lent
    struct half_copy *copy; // of params, on dev: who updates them there may
                            // write it, too; or NULL
    bool awaits; // the caller asks for params by sync_await() before it reads
    const struct bucket *buckets; // tile [0,n) in the order backward fills them
    int nbuckets;
    const struct optim_config *optim;     // the rule; run it wherever you like
    const struct sync_settings *settings; // nothing in them is left to derive
    struct spans *spans; // for what the backend's threads do; may be NULL
    double slowdown; // > 1: this worker is a straggler, so many times slower
    const struct norm_parts *parts; // NULL: the vectors are the whole model's
};

struct sync_in {
    int step;    // counts updates from 1: those applied so far, plus one
    int skipped; // steps of the run so far that were no updates
    float lr;
    float grad_scale; // 1 / (world * accumulation * loss scale)
    float clip;       // largest gradient norm allowed; 0 for no limit
    double loss;      // of this worker's batch, where somebody gathers losses
    bool last;        // no step follows: leave nothing under way
};

struct sync_out {
    float grad_norm; // of the mean gradient, before clipping; with merge() of
                     // this worker's own
    bool skipped;    // not finite, so nobody updated; with merge(): so this
                     // worker did not
    bool dropped;    // came too late (backup workers): it was not used
    int missed;      // further steps that the others made meanwhile: params
                     // are those after step + missed
    double loss; // on worker 0 of a strategy that scatters: everybody's mean
    int lag;     // updates by others that this worker's params lack: ssp,
                 // asp: between its pull and its push; with merge(): since
                 // params were one; 0: all workers' params are the same
    uint64_t update_began_ns, update_ended_ns; // where this worker updates
    // The time by which slowdown lengthened this worker's own; 0, 0 without.
    uint64_t slowed_began_ns, slowed_ended_ns;
};

// Where a block that is lent is now; a member that is not lent is NULL.
struct sync_place {
    void *weights; // in job.format
    float *grads;
};

struct sync {
    const struct sync_ops *ops;
    const struct group_ops *carrier; // of the job's; NULL where it has none
    struct sync_job job; // with `copies`: its vectors are the host's copies
    struct group_stats stats;       // since open; the backend counts
    uint64_t ready_ns, step_ns;     // the trainer was held up in all, so far
    const char *transport;          // what carries the bytes; NULL: none travel
    float scale;                    // of the sum that step() leaves in grads
    bool lends_params, lends_grads; // as job.settings say: sync_share()
    struct sync_place place;        // of the block that was lent last
    bool own_update; // open() says so: step() leaves the next params itself
    bool copy_only; // open() says so: step() leaves the next params in job.copy
                    // and only a part of them in params; see sync_whole()
    bool coming;    // params, or job.copy: some are on their way: sync_await()
    int alone;      // with merge(): steps since all workers' params were one
    int next_bucket;  // sync.c checks the order of calls
    bool overlap;     // false: buckets wait for the whole backward pass
    uint64_t calls;   // of sync_step
    uint64_t left_ns; // when the last step returned, and the time waited since
    uint64_t joined;  // updates that the group had made before this worker
                      // came, of a job that takes in workers as it runs
    struct sync_fault fault;
    struct copies *copies;
    struct rule rule; // the update, unless own_update
    void *state;      // ops->state_size zeroed bytes; sync.c frees it
};

// What a range is of, other than a slot of the optimiser's state.
enum { SYNC_PARAMS = -1, SYNC_GRADS = -2 };

// A range: elements [off, off + n) of slot `slot`, or of one of the above, in
// parameter order, at v, in host memory. On load it may return SYNC_ABSENT for
// a slot that is not the optimiser's: the checkpoint has none of it.
enum { SYNC_ABSENT = 1, SYNC_SLOT_NAME = 64 };
typedef int sync_visit(void *ctx, int slot, size_t off, float *v, size_t n);

// A strategy is one constant of this type. Every function returns 0, or -1
// after fail("what went wrong"). open() may fail half-way; close() follows.
struct sync_ops {
    bool on_device; // without a carrier: works on the device's memory itself;
                    // other strategies are given host copies of a GPU's
    size_t state_size;
    int (*open)(struct sync *s);
    // Optional: training began at zero_ns of this process's clock, for
    // processes of the backend's own, which record too.
    int (*clock)(struct sync *s, uint64_t zero_ns);
    // v (n elements) on every worker := worker 0's. slot: of the optimiser's
    // state, or -1 for the parameters.
    int (*broadcast)(struct sync *s, int slot, float *v);
    // Optional: worker 0 hands out the batches, as sync_scatter() promises.
    int (*scatter)(struct sync *s, int32_t *x, int32_t *y, size_t n);
    int (*ready)(struct sync *s, int b); // optional; must not block
    // With lends_grads: block b, which counts from the start of the vector, is
    // about to be used, and is not used any more. The gradient of a block that
    // was taken for backward is complete at ready().
    int (*take)(struct sync *s, int b, bool backward, struct sync_place *out);
    int (*give)(struct sync *s, int b);
    // With lends_grads: visit this worker's ranges of the summed gradient, or
    // of the parameters where those are lent.
    int (*ranges)(struct sync *s, int what, sync_visit *visit, void *ctx);
    // grads := s->scale times the sum over all workers; the door updates. With
    // own_update: params (with copy_only: job.copy) := the next parameters, and
    // *out is filled.
    int (*step)(struct sync *s, const struct sync_in *in, struct sync_out *out);
    // Optional: step() leaves the sum under way. settle: the host waits for it,
    // with the deadline. follow, where the carrier works on the device: what
    // the compute queue is asked for from now on waits for it.
    int (*follow)(struct sync *s);
    int (*settle)(struct sync *s);
    // With coming: wait until elements [off, off + n) are there; clear it once
    // all are.
    int (*await)(struct sync *s, size_t off, size_t n);
    // Optional: workers update by their own gradients, so that ready() is not
    // called, and step() leaves s->scale times `world` times those in grads.
    // When it is time, params := what all workers go on from.
    int (*merge)(struct sync *s);
    // With copy_only: params := the whole parameters.
    int (*whole)(struct sync *s);
    // Optional: the state is of more slots than the optimiser's; how many, and
    // the name of one.
    int (*slots)(const struct sync *s);
    void (*slot_name)(const struct sync *s, int slot,
                      char name[SYNC_SLOT_NAME]);
    // With own_update or slots: visit the state, as sync_save() and sync_load()
    // promise. With lends_params save visits those, too.
    int (*save)(struct sync *s, int rc, sync_visit *visit, void *ctx);
    int (*load)(struct sync *s, sync_visit *visit, void *ctx);
    void (*close)(struct sync *s); // optional; must accept zeroed state
};

// NULL after fail(). Copies *job; what it points to outlives the backend. A
// call of all workers, which compare their settings and choose one carrier.
struct sync *sync_open(const struct sync_ops *ops, const struct sync_job *job);

// Each returns 0, or -1 after fail().
int sync_bcast(struct sync *s);
int sync_clock(struct sync *s, uint64_t zero_ns);
// Of a strategy with scatter(): a worker's micro-batch is x and y, n tokens
// each. Worker 0 has those of all ranks, one after the other, and keeps the
// first; the others receive theirs.
int sync_scatter(struct sync *s, int32_t *x, int32_t *y, size_t n);
// The trainer has waited took_ns for other members: no time of a straggler's
// own.
void sync_waited(struct sync *s, uint64_t took_ns);
int sync_ready(struct sync *s, int b);
int sync_take(struct sync *s, int b, bool backward, struct sync_place *out);
int sync_give(struct sync *s, int b);
int sync_step(struct sync *s, const struct sync_in *in, struct sync_out *out);
// With job.awaits, before anybody reads elements [off, off + n) of params or of
// job.copy: they are the next ones.
int sync_await(struct sync *s, size_t off, size_t n);
// Before anybody but the model reads params: all of them are there. A call of
// all workers.
int sync_whole(struct sync *s);
void sync_close(struct sync **s); // leaves the group, frees, sets *s to NULL

// The optimiser's state as ranges: a checkpoint made under one backend and
// world resumes under any other. All workers call it. save: visit() is called
// on some workers with ranges that together are the whole state once. `rc`: -1
// where this worker has already failed to prepare what is visited; where
// several workers visit, a failure of one ends the call on all. load: visit()
// is called likewise, and fills them; then every worker, or server, has the
// state.
int sync_save(struct sync *s, int rc, sync_visit *visit, void *ctx);
int sync_load(struct sync *s, sync_visit *visit, void *ctx);

// How many slots sync_save() visits; the name of one, without dot or blank. The
// optimiser's slots come first, under the names of optim.h.
int sync_slots(const struct sync *s);
void sync_slot_name(const struct sync *s, int slot, char name[SYNC_SLOT_NAME]);

// This worker's ranges of SYNC_GRADS, with lends_grads: the sum that the last
// step was given. Of SYNC_PARAMS, with lends_params: visit() reads them, or
// fills them in before sync_bcast().
int sync_ranges(struct sync *s, int what, sync_visit *visit, void *ctx);

#endif
