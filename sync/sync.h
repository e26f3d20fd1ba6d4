// sync.h - how the workers agree on the next parameters.
//
// A worker opens one backend, calls sync_bcast() once, and then in every step
//
//     sync_ready(s, 0), sync_ready(s, 1) ...   as backward fills each bucket
//     sync_step(s, &in, &out)                  when backward is done
//
// When sync_step() returns 0, params on this worker are the next parameters.
// With copy_only, job.copy is their 16-bit copy, and sync_whole() completes
// params. With job.awaits, some elements may still be on their way:
// sync_await() waits for them.
//
// A strategy may keep the vectors in shards (sync_share()) and lend them to the
// model a block at a time: sync_take() before the model reads a block,
// sync_give() after. Then each bucket is one block, and every micro-batch calls
// sync_ready() for all of them.
//
// With a strategy that has merge(), every worker updates by its own gradients.
// Every settings.every steps, and after the last step, merge() gives all
// workers the same parameters again.
//
// A backend is a strategy (who holds what, who updates: this contract) and, for
// most, a carrier (how vectors travel: group/group.h). Code above this file
// must not ask which strategy or carrier runs.

#pragma once

#include "config/settings.h"
#include "group/group.h"
#include "optim/rule.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct backend;      // a way of agreeing, as plain data (config/backends.h)
struct cluster;      // ranks 0..world-1; control-plane barrier and sum
struct device;       // allocate, copy, add, events: CPU or CUDA
struct optim_config; // plain data, so a server can be told it in one message
struct spans;        // telemetry: records what a backend does, and when
struct half_copy;    // the 16-bit weights that a model multiplies by
struct copies;       // host copies of a GPU's vectors
struct residuals;    // what squeeze= leaves to the next step

struct bucket {
    size_t off, n; // a range of params and grads, in elements
};

// What every backend is given. Borrowed: the caller outlives the backend.
struct sync_job {
    const struct backend *backend; // its row of the table
    // The carriers that it may use, the best first, then NULL. NULL, or an
    // empty list: the backend needs no carrier.
    const struct group_ops *const *carriers;
    struct cluster *cluster;
    struct device *dev;    // where params and grads live
    float *params, *grads; // flat, same layout, n elements each; NULL if the
                           // strategy lends them
    size_t n;
    enum dtype format; // of the weights that the strategy lends
    // The 16-bit copy of params, on dev, or NULL. A strategy that updates
    // params on dev may write it, too.
    struct half_copy *copy;
    bool awaits; // the caller asks for params by sync_await() before it reads
    const struct bucket *buckets; // tile [0,n) in the order backward fills them
    int nbuckets;
    const struct optim_config *optim;     // the update rule
    const struct sync_settings *settings; // after sync_derive(): none is "auto"
    struct spans *spans; // records what the backend's threads do; may be NULL
    // > 1: this worker is a straggler. Its own time takes `slowdown` times as
    // long.
    double slowdown;
    const char *folder; // of the file of the optimiser's state; NULL: it is in
                        // memory
    const struct norm_parts *parts; // NULL: the vectors are the whole model's
    bool servers_apart;   // on hosts without a worker, however many there are
    bool restarted;       // the fault of inject= happened before this start
    uint64_t seed;        // of a strategy's random choices
    float velocity_decay; // of workers' momenta, with momentum_correction=1 and
                          // squeeze=demo; optim then has none
    float grad_scale;     // with freeze=: that of every step
};

struct sync_in {
    int step;    // counts updates from 1: those applied so far, plus one
    int skipped; // steps so far in this run that updated nothing
    float lr;
    float grad_scale; // 1 / (world * accumulation * loss scale)
    float clip;       // largest gradient norm allowed; 0 for no limit
    double loss;      // of this worker's batch; only some backends use it
    bool last;        // no step follows: finish every exchange
};

struct sync_out {
    float grad_norm; // of the mean gradient, before clipping; with merge(): of
                     // this worker's own gradient
    double own_norm; // with own_norm=1: of this worker's own gradient; else 0
    bool skipped; // the norm is not finite, so no worker updated; with merge():
                  // so this worker did not
    bool dropped; // this worker's gradient came too late and was not used
                  // (backup workers)
    int missed;   // further steps that the other workers made meanwhile: params
                  // are those after step + missed
    int used;     // gradients of workers in the updates since the last call
    double loss;  // only on worker 0, and only if the strategy has scatter():
                  // the mean loss of all workers
    int lag;      // updates by other workers that this worker's params lack; 0:
                  // none. ssp, asp: those between its pull and its push. With
                  // merge(): those since all params were the same
    // Of this worker's update; 0, 0 if it does not update.
    uint64_t update_began_ns, update_ended_ns;
    // The delay that slowdown added to this worker's own time; 0, 0: none.
    uint64_t slowed_began_ns, slowed_ended_ns;
};

// Addresses of the block that is lent; NULL if that vector is not lent.
struct sync_place {
    void *weights; // in job.format
    float *grads;
};

// The host memory that has all lent blocks. weights: only with lends_params.
struct sync_lent {
    void *weights;
    float *grads;
    size_t weight_bytes, grad_bytes;
};

struct sync {
    const struct sync_ops *ops;
    const struct group_ops *carrier; // one of job.carriers; NULL if it has none
    struct group *group;      // of all workers: open() calls members_open(),
                              // sync.c closes it before close(). NULL: none
    struct sync_job job;      // with `copies`, its vectors are the host copies
    struct group_stats stats; // since open; the backend counts
    const char *transport;    // the carrier's name; NULL: no bytes travel
    float scale;              // step() leaves scale times the sum in grads
    bool lends_params, lends_grads; // from job.settings: sync_share()
    struct sync_place place;        // of the block that was lent last
    struct sync_lent lent;          // set by open(), with lends_grads
    // Set by open(). own_update: step() itself leaves the next params.
    // copy_only: step() leaves the next params in job.copy and only a part of
    // them in params; sync_whole() completes them.
    bool own_update;
    bool copy_only;
    bool gives_update; // set by open(): grads become the update, which sync.c
                       // neither scales nor clips
    bool gives_moment; // of this step, set by ready(): grads become AdamW's
                       // next first moment, but for grad_scale and clip. The
                       // second stays
    bool counts;     // set by open(): step() fills out->used. Else each update
                     // takes in the gradients of all workers
    bool coming;     // parts of params or of job.copy are on their way
    int alone;       // with merge(): steps since all params were the same
    int next_bucket; // sync.c checks the order of calls
    double own_squares; // own_norm.c: of the buckets of this step so far
    bool overlap;       // false: buckets wait for the whole backward pass
    uint64_t steps;     // of the run so far, with those before this start
    uint64_t calls;     // of sync_step
    uint64_t left_ns; // when the last call returned, plus the time waited since
    // Set by open() and sync_bcast(). late: the group was running when this
    // worker joined it. Then joined: steps that the group had made since it
    // began; joined_updates: those that were updates; joined_used: the
    // gradients in these updates.
    bool late;
    uint64_t joined, joined_updates, joined_used;
    int saver; // the rank that saves: 0, or in an elastic job the lowest one
               // that was alive at the last step
    struct sync_fault fault;
    struct copies *copies;             // of vectors on a GPU, and of the blocks
    struct block_copies *block_copies; // that are lent to it; NULL: none
    struct rule rule;                  // the update, unless own_update
    struct residuals *residuals;       // set by open(), for residuals_slots()
    void *state; // ops->state_size zeroed bytes; sync.c frees it
};

// A visited range belongs to a slot of the optimiser's state (0, 1, ..) or to:
enum { SYNC_PARAMS = -1, SYNC_GRADS = -2 };

// Visits one range: elements [off, off + n) of slot `slot`, or of one of the
// above, in parameter order. v holds them in host memory. Returns 0, or -1
// after fail(). On load it may return SYNC_ABSENT for a slot that is not the
// optimiser's: the checkpoint has no such slot.
enum { SYNC_ABSENT = 1, SYNC_SLOT_NAME = 64 };
typedef int sync_visit(void *ctx, int slot, size_t off, float *v, size_t n);

// A strategy is one constant of type struct sync_ops, with a table more if it
// keeps the optimiser's state itself. Every function returns 0, or -1 after
// fail("what went wrong").

// The optimiser's state, and what else a checkpoint needs. Without this table
// it is that of s->rule (slots.h).
struct sync_state_ops {
    // How many slots the state has, and the name of one.
    int (*slots)(const struct sync *s);
    void (*slot_name)(const struct sync *s, int slot,
                      char name[SYNC_SLOT_NAME]);
    // Visit the state, as sync_save() and sync_load() describe. With
    // lends_params, save visits the parameters too.
    int (*save)(struct sync *s, sync_visit *visit, void *ctx);
    int (*load)(struct sync *s, sync_visit *visit, void *ctx);
};

// All but open() is optional. open() may fail half-way; close() follows.
struct sync_ops {
    // Only for strategies without a carrier: this one works on the device's
    // memory itself. Other strategies are given host copies of a GPU's vectors.
    bool on_device;
    size_t state_size;
    const struct sync_state_ops *state;
    int (*open)(struct sync *s);
    // Copy worker 0's v (n elements) into v on every worker. v is slot `slot`
    // of the optimiser's state, or the parameters if `slot` is -1. Without this
    // function s->group does so (members_broadcast()).
    int (*broadcast)(struct sync *s, int slot, float *v);
    int (*ready)(struct sync *s, int b); // must not block
    // Without own_update: leave s->scale times the sum over all workers in
    // grads; sync.c then updates. With own_update: leave the next parameters in
    // params (with copy_only: in job.copy) and fill *out.
    int (*step)(struct sync *s, const struct sync_in *in, struct sync_out *out);
    // If step() returns before the sum is complete. settle: the host waits for
    // the sum, with the deadline. follow, if the carrier works on the device:
    // the compute queue's next work waits for the sum.
    int (*follow)(struct sync *s);
    int (*settle)(struct sync *s);
    // sync.c has updated with the sum, or skipped the step because the sum is
    // not finite.
    void (*updated)(struct sync *s, bool skipped);
    // With lends_grads. take: the model is about to use block b. give: it no
    // longer uses block b. Blocks count from the start of the vector. The
    // gradient of a block that was taken for backward is complete at ready().
    int (*take)(struct sync *s, int b, bool backward, struct sync_place *out);
    int (*give)(struct sync *s, int b);
    // With lends_grads: visit this worker's ranges of the summed gradient, or
    // of the parameters if those are lent.
    int (*ranges)(struct sync *s, int what, sync_visit *visit, void *ctx);
    // With coming: wait until elements [off, off + n) have arrived. It clears
    // s->coming once all have.
    int (*await)(struct sync *s, size_t off, size_t n);
    // With copy_only: complete params.
    int (*whole)(struct sync *s);
    // If workers update by their own gradients. Then ready() is not called, and
    // step() leaves s->scale times `world` times this worker's gradients in
    // grads. merge() gives all workers the parameters that they continue from.
    int (*merge)(struct sync *s);
    // Worker 0 sends the batches to the others (sync_scatter()).
    int (*scatter)(struct sync *s, int32_t *x, int32_t *y, size_t n);
    // Tells the backend's own processes, which record spans too, that training
    // began at zero_ns of this process's clock.
    int (*clock)(struct sync *s, uint64_t zero_ns);
    // If workers need not be at the same step: sync_work().
    int (*work)(struct sync *s, int (*work)(void *ctx), void *ctx);
    void (*close)(struct sync *s); // must accept zeroed state
};

// Opens a backend. Copies *job; what *job points to must outlive the backend.
// All workers call it: they compare their settings and choose one carrier. The
// caller ends it with sync_close(). Returns NULL after fail().
struct sync *sync_open(const struct sync_ops *ops, const struct sync_job *job);

// Each of these returns 0, or -1 after fail(). sync_bcast: all workers get
// worker 0's parameters. sync_clock: training began at zero_ns of this
// process's clock (now_ns()); the backend's own processes count from there.
int sync_bcast(struct sync *s);
int sync_clock(struct sync *s, uint64_t zero_ns);
// The run has taken `steps` steps before this start. Without a call: none.
void sync_resume(struct sync *s, int steps);
// Only with a strategy that has scatter(). x and y are one micro-batch, n
// tokens each. Worker 0 passes those of all ranks (world * n tokens), one rank
// after the other, and keeps the first n. The other workers receive theirs.
int sync_scatter(struct sync *s, int32_t *x, int32_t *y, size_t n);
// The trainer has waited took_ns nanoseconds for other members: a straggler's
// own time does not include them.
void sync_waited(struct sync *s, uint64_t took_ns);
// The work that fills bucket b is done, or queued on the compute queue. Call it
// for b = 0, 1, .. in this order.
int sync_ready(struct sync *s, int b);
// With lends_grads: *out says where block b is until sync_give(). Blocks count
// from the start of the vector; backward: for a backward pass.
int sync_take(struct sync *s, int b, bool backward, struct sync_place *out);
int sync_give(struct sync *s, int b);
// One update, after all buckets of the step are ready. Fills *out.
int sync_step(struct sync *s, const struct sync_in *in, struct sync_out *out);
// With job.awaits: waits until elements [off, off + n) of params or job.copy
// are the next parameters. Call it before reading them.
int sync_await(struct sync *s, size_t off, size_t n);
// Completes params on this worker, for readers other than the model. All
// workers call it.
int sync_whole(struct sync *s);
void sync_close(struct sync **s); // leaves the group, frees, sets *s to NULL

// The optimiser's state as ranges: a checkpoint written with one backend and
// world can be resumed with any other. All workers call both. Each returns 0,
// or -1 after fail().
//
// save: visit() is called on some workers, with ranges that together cover the
// whole state once. Workers do not exchange anything meanwhile, so the caller
// has to wait until all have ended.
// load: visit() is called in the same way and fills the ranges; after that
// every worker, or server, has its state.
int sync_save(struct sync *s, sync_visit *visit, void *ctx);
int sync_load(struct sync *s, sync_visit *visit, void *ctx);

// Does work(ctx) on this worker alone. It may take longer than the deadline:
// workers that wait for this one then wait on. work() may call sync_save().
// Returns work's result, or -1 after fail().
int sync_work(struct sync *s, int (*work)(void *ctx), void *ctx);

// sync_slots: how many slots sync_save() visits. sync_slot_name: the name of
// one, without dot or blank. The optimiser's slots come first, with the names
// of optim.h.
int sync_slots(const struct sync *s);
void sync_slot_name(const struct sync *s, int slot, char name[SYNC_SLOT_NAME]);

// Visits the ranges that this worker holds. SYNC_GRADS, with lends_grads: the
// ranges of the summed gradient of the last step. SYNC_PARAMS, with
// lends_params: the ranges of the parameters; visit() reads them, or fills them
// in before sync_bcast(). Returns 0, or -1 after fail().
int sync_ranges(struct sync *s, int what, sync_visit *visit, void *ctx);
