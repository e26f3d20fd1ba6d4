// zero.c - ZeRO: every worker updates only its own chunks. It holds the
// optimiser's state for these chunks only. With shard=2 it also holds the
// summed gradient for these chunks only, and with shard=3 the parameters, too.
//
//     ready    reduce_scatter of a unit: the sum of a chunk goes to its owner
//     step     wait; squares of own chunks | all_reduce of block sums
//              update own chunks; all_gather each unit after its update, in the
//              order in which the next forward reads them
//     await    in that forward: wait for the units that contain a block
//
//     trainer  ready ready ready ... step |await| update | forward: |await| ..
//     group         [RS 2][RS 1] .. [RS 0]          [AG 0][AG 1][AG 2]
//
// So parameters arrive while the next forward computes, just as gradients are
// sent while backward computes. If no thread moves data, or with overlap=0,
// step() itself waits for all of them.
//
// With squeeze= a unit travels as messages (squeeze/scatter.h): an all_to_all
// takes the place of the reduce_scatter. With shard=1 step() decodes and adds
// before it looks at the sums.
//
// With shard=2 and 3 the units are the model's blocks. They are in buffers
// (blocks.h) and are reduce-scattered in every micro-batch. With shard=3 blocks
// are gathered before the model uses them, and not after the step:
//
//     trainer  |take 0|take 1 |take 2 | .. forward, backward ..  step update
//     group  [AG 0][AG 1][AG 2][AG 3][AG 4] .. [RS 4][AG 1][RS 3] ..
//
// Bytes: reduce_scatter and all_gather are the two halves of the ring's
// all_reduce. So with shard=1 the bytes are those of the ring, plus 8 bytes for
// each block of the norm. With a 16-bit wire gradients travel in 16 bits. If
// the model multiplies by a 16-bit copy of the parameters, only that copy is
// gathered after a step; it has the same bits as one made from all parameters.
// With shard=1 and 2 the parameters themselves are then gathered only when a
// checkpoint is written (zero_whole). Rajbhandari et al., "ZeRO: Memory
// Optimizations Toward Training Trillion Parameter Models", SC 2020.
//
// The norm: each worker adds the squares of its own blocks, and has 0 as the
// sum of each other block. An all_reduce brings every block's sum to all
// workers without a change, since x + 0 = x. Then all workers add the sums in
// the order of the vector. So the norm, the clipping and the test for overflow
// have the same bits as with other backends.
//
// With offload=disk slots, and with shard=3 parameters, are in files.
//
// The update runs on the host. sync.c copies a GPU's vectors to the host and
// back. So with a GPU, ZeRO saves host memory.

#include "zero/zero.h"

#include "base/base.h"
#include "group/group.h"
#include "optim/offload.h"
#include "optim/segment.h"
#include "squeeze/scatter.h"
#include "sync/members.h"
#include "zero/blocks.h"
#include "zero/shards.h"

#include <math.h>
#include <string.h>

struct zero {
    struct shards shards;
    struct scatter scatter;        // of compressed gradients
    struct blocks blocks;          // with lends_grads
    float *slots[OPTIM_MAX_SLOTS]; // shards.own elements each; or
    struct offload *file;          // the slots are in this file, and
                                   // with shard=3 the parameters in another
    double *sums;                  // of squares, of all blocks of the vector
    bool partial;      // params of other workers' chunks are out of date
    bool late;         // step() returns while parameters are gathered
    int next;          // the unit that will be complete next
    uint64_t ticket;   // of the newest exchange
    uint64_t *gathers; // by unit: the ticket of its newest all_gather
};

// Shares the vectors, if members can read each other's memory.
static int share(struct sync *s)
{
    struct zero *z = s->state;
    const size_t bytes = s->job.n * sizeof(float);
    if (s->job.grads && group_share(s->group, s->job.grads, bytes))
        return -1;
    if (s->job.params && group_share(s->group, s->job.params, bytes))
        return -1;
    return s->lends_grads ? blocks_share(&z->blocks) : 0;
}

static int open_slots(struct zero *z, const struct sync_job *job)
{
    int slots = optim_slots(job->optim);
    if (job->folder) {
        z->file = offload_open(job->folder, slots, z->shards.own);
        return z->file ? 0 : -1;
    }
    for (int i = 0; i < slots; i++) {
        z->slots[i] = mem_alloc(z->shards.own, sizeof(float));
        if (!z->slots[i])
            return -1;
    }
    return 0;
}

static int zero_open(struct sync *s)
{
    struct zero *z = s->state;
    const struct sync_job *job = &s->job;
    s->own_update = true;
    s->copy_only = job->copy && !s->copies;
    s->residuals = &z->scatter.residuals;
    if (shards_open(&z->shards, job, RULE_BLOCK) ||
        scatter_open(&z->scatter, s, z->shards.all, z->shards.count) ||
        (s->lends_grads &&
         blocks_open(&z->blocks, s, &z->shards, &z->scatter)) ||
        open_slots(z, job))
        return -1;
    z->sums = mem_alloc(segment_blocks(job->n), sizeof *z->sums);
    z->gathers = mem_alloc((size_t)z->shards.count, sizeof *z->gathers);
    if (!z->sums || !z->gathers)
        return -1;
    const struct members_need need = {
        .grain = RULE_BLOCK,
        .largest = z->shards.largest,
        .depth = (size_t)z->shards.count + 2 * BLOCK_BUFFERS,
        .pairs = z->scatter.ops,
    };
    if (members_open(s, &need))
        return -1;
    if (z->scatter.ops)
        s->scale = 1; // messages are not cast
    // Data move while the model computes only if a thread moves them.
    z->late = job->awaits && s->overlap && !s->copies && s->carrier->threaded &&
              s->group->job.thread;
    return share(s);
}

static int zero_take(struct sync *s, int b, bool backward,
                     struct sync_place *out)
{
    struct zero *z = s->state;
    if (blocks_take(&z->blocks, b, backward, out))
        return -1;
    s->stats = s->group->stats;
    return 0;
}

static int zero_give(struct sync *s, int b)
{
    struct zero *z = s->state;
    return blocks_give(&z->blocks, b);
}

static int zero_ready(struct sync *s, int b)
{
    struct zero *z = s->state;
    if (b == 0)
        scatter_begin(&z->scatter, s);
    if (s->lends_grads)
        return blocks_ready(&z->blocks, s->job.nbuckets - 1 - b);
    int i = z->next;
    const struct bucket *all = &z->shards.all[i];
    if (s->job.buckets[b].off > all->off)
        return 0; // it is not complete yet
    z->next = (z->next + 1) % z->shards.count;
    if (!z->scatter.whole)
        return scatter_send(&z->scatter, s, i, s->job.grads + all->off,
                            z->next == 0, &z->ticket);
    struct group_vector v = group_floats(s->job.grads + all->off, all->n);
    v.wire = s->job.settings->wire;
    v.scale = s->scale;
    v.awaited = z->next == 0;
    return group_reduce_scatter(s->group, &v, &z->ticket);
}

// The parameters of elements [at, at + *n) of this worker's chunk of a unit.
// *n becomes how many of them are there. `changes`: the caller will write to
// them. 0, or -1 after fail().
static int own_params(const struct sync *s, const struct unit *u, size_t at,
                      bool changes, size_t *n, float **own)
{
    const struct zero *z = s->state;
    if (s->lends_params)
        return blocks_params(&z->blocks, u->at + at, changes, n, own);
    *own = s->job.params + u->own.off + at;
    return 0;
}

// This worker's chunk of the summed gradient of a unit.
static float *own_grads(const struct sync *s, const struct unit *u)
{
    const struct zero *z = s->state;
    return s->lends_grads ? z->blocks.sums + u->at : s->job.grads + u->own.off;
}

// Waits for the sums of this worker's chunks, and decodes those that were
// compressed.
static int take_sums(struct sync *s)
{
    struct zero *z = s->state;
    if (group_await(s->group, z->ticket))
        return -1;
    if (s->lends_grads)
        return blocks_settle(&z->blocks);
    for (int i = 0; !z->scatter.whole && i < z->shards.count; i++)
        if (scatter_take(&z->scatter, s, i, own_grads(s, &z->shards.units[i])))
            return -1;
    return 0;
}

// The sum of squares of the whole gradient, with the same bits on all workers.
static int add_squares(const struct sync *s, double *out)
{
    const struct zero *z = s->state;
    const struct norm_parts *parts = s->job.parts;
    size_t blocks = segment_blocks(s->job.n);
    struct group_vector all = group_plain(z->sums, blocks, DTYPE_F64);
    uint64_t ticket;
    all.awaited = true;
    memset(z->sums, 0, blocks * sizeof *z->sums);
    for (int i = 0; i < z->shards.count; i++) {
        const struct unit *u = &z->shards.units[i];
        segment_squares(own_grads(s, u), u->own.off, u->own.n, parts, z->sums);
    }
    if (group_all_reduce(s->group, &all, &ticket) ||
        group_await(s->group, ticket))
        return -1;
    *out = segment_norm(z->sums, blocks);
    return parts ? parts->sum(parts->ctx, out) : 0;
}

// Updates this worker's chunk of unit i, and begins to gather the unit. With
// shard=3 units are gathered later, before the model uses them.
static int update_unit(struct sync *s, int i, const struct sync_in *in,
                       float scale)
{
    struct zero *z = s->state;
    const struct unit *u = &z->shards.units[i];
    const struct sync_job *job = &s->job;
    const struct rule_in rule = {.step = in->step,
                                 .lr = in->lr,
                                 .copy = s->copy_only ? job->copy : NULL};
    for (size_t at = 0, n; at < u->own.n; at += n) {
        float *slots[OPTIM_MAX_SLOTS], *params;
        n = u->own.n - at;
        if (offload_take(z->file, z->slots, u->at + at, true, &n, slots) ||
            own_params(s, u, at, true, &n, &params))
            return -1;
        segment_update(job->optim, params, slots, own_grads(s, u) + at,
                       u->own.off + at, n, &rule, scale);
    }
    if (s->lends_params)
        return 0;
    const struct bucket *all = &z->shards.all[i];
    struct group_vector v = group_floats(job->params + all->off, all->n);
    if (s->copy_only) {
        v.type = v.wire = job->copy->format;
        v.data = (char *)job->copy->at + all->off * dtype_bytes(v.type);
    }
    if (group_all_gather(s->group, &v, &z->ticket))
        return -1;
    z->gathers[i] = z->ticket;
    return 0;
}

// Waits for elements [off, off + n). Units are gathered in the order of the
// vector, so it is enough to wait for the last unit with some of them.
static int zero_await(struct sync *s, size_t off, size_t n)
{
    const struct zero *z = s->state;
    int i = 0;
    while (z->shards.all[i].off >= off + n)
        i++;
    if (group_await(s->group, z->gathers[i]))
        return -1;
    s->coming = i > 0;
    return 0;
}

// Counts only the bytes of these gathers: those before, after a step, are
// counted with the next step.
static int zero_whole(struct sync *s)
{
    struct zero *z = s->state;
    const struct group_stats before = s->group->stats;
    for (int i = 0; z->partial && i < z->shards.count; i++) {
        const struct bucket *all = &z->shards.all[i];
        struct group_vector v = group_floats(s->job.params + all->off, all->n);
        if (group_all_gather(s->group, &v, &z->ticket))
            return -1;
    }
    z->partial = false;
    if (group_await(s->group, z->ticket))
        return -1;
    group_stats_add(&s->stats, &s->group->stats);
    group_stats_less(&s->stats, &before);
    return 0;
}

static int zero_step(struct sync *s, const struct sync_in *in,
                     struct sync_out *out)
{
    struct zero *z = s->state;
    double squares;
    if (take_sums(s) || add_squares(s, &squares))
        return -1;
    float scale = optim_clip_scale(squares, in->grad_scale / s->scale, in->clip,
                                   &out->grad_norm);
    out->skipped = !isfinite(out->grad_norm);
    s->stats = s->group->stats;
    out->update_began_ns = now_ns();
    for (int i = z->shards.count - 1; !out->skipped && i >= 0; i--)
        if (update_unit(s, i, in, scale))
            return -1;
    out->update_ended_ns = now_ns();
    if (s->copy_only && !out->skipped)
        s->job.copy->fresh = z->partial = true;
    if (s->lends_grads)
        blocks_forget(&z->blocks, !out->skipped);
    s->coming = !out->skipped && !s->lends_params;
    if (s->coming && (!z->late || in->last) && zero_await(s, 0, s->job.n))
        return -1;
    if (!s->coming)
        s->stats = s->group->stats;
    return 0;
}

static void zero_updated(struct sync *s, bool skipped)
{
    struct zero *z = s->state;
    scatter_updated(&z->scatter, skipped);
}

// This worker's ranges of SYNC_PARAMS or SYNC_GRADS.
static int visit_ranges(struct sync *s, int what, bool changes,
                        sync_visit *visit, void *ctx)
{
    const struct zero *z = s->state;
    for (int i = 0; i < z->shards.count; i++) {
        const struct unit *u = &z->shards.units[i];
        for (size_t at = 0, n; at < u->own.n; at += n) {
            float *own = own_grads(s, u) + at;
            n = u->own.n - at;
            if ((what == SYNC_PARAMS &&
                 own_params(s, u, at, changes, &n, &own)) ||
                visit(ctx, what, u->own.off + at, own, n))
                return -1;
        }
    }
    return 0;
}

static int zero_ranges(struct sync *s, int what, sync_visit *visit, void *ctx)
{
    return visit_ranges(s, what, true, visit, ctx);
}

// This worker's ranges of a slot.
static int visit_slot(struct sync *s, int slot, bool changes, sync_visit *visit,
                      void *ctx)
{
    const struct zero *z = s->state;
    for (int i = z->shards.count - 1; i >= 0; i--) {
        const struct unit *u = &z->shards.units[i];
        for (size_t at = 0, n; at < u->own.n; at += n) {
            float *slots[OPTIM_MAX_SLOTS];
            n = u->own.n - at;
            if (offload_take(z->file, z->slots, u->at + at, changes, &n,
                             slots) ||
                visit(ctx, slot, u->own.off + at, slots[slot], n))
                return -1;
        }
    }
    return 0;
}

static int visit_slots(struct sync *s, bool changes, sync_visit *visit,
                       void *ctx)
{
    for (int slot = 0; slot < optim_slots(s->job.optim); slot++)
        if (visit_slot(s, slot, changes, visit, ctx))
            return -1;
    return 0;
}

static int zero_load(struct sync *s, sync_visit *visit, void *ctx)
{
    float by;
    return visit_slots(s, true, visit, ctx) ||
                   residuals_load(s, visit, ctx, &by)
               ? -1
               : 0;
}

static int zero_save(struct sync *s, sync_visit *visit, void *ctx)
{
    if (s->lends_params && visit_ranges(s, SYNC_PARAMS, false, visit, ctx))
        return -1;
    return visit_slots(s, false, visit, ctx) || residuals_save(s, visit, ctx)
               ? -1
               : 0;
}

static void zero_close(struct sync *s)
{
    struct zero *z = s->state;
    for (int i = 0; i < OPTIM_MAX_SLOTS; i++)
        mem_free(z->slots[i]);
    offload_close(&z->file);
    mem_free(z->sums);
    mem_free(z->gathers);
    scatter_close(&z->scatter);
    blocks_close(&z->blocks);
    shards_close(&z->shards);
}

static const struct sync_state_ops state = {
    .slots = residuals_slots,
    .slot_name = residuals_slot_name,
    .save = zero_save,
    .load = zero_load,
};

const struct sync_ops sync_zero = {
    .state_size = sizeof(struct zero),
    .state = &state,
    .open = zero_open,
    .ready = zero_ready,
    .step = zero_step,
    .take = zero_take,
    .give = zero_give,
    .ranges = zero_ranges,
    .await = zero_await,
    .whole = zero_whole,
    .updated = zero_updated,
    .close = zero_close,
};
