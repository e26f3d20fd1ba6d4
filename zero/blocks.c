// blocks.c - buffers for the blocks with which a model computes now.
//
// A buffer of weights goes through these states for one block after the other:
//
//              ask()             await()             blocks_give()
//     free  ---------> asked ---------> arrived, taken ---------> arrived
//       ^                                       ^                    |
//       |                          take_weights(): the same block    |
//       +---- ask(): another block; blocks_forget(): an update ------+
//
// One of gradients:
//
//              blocks_take()             blocks_ready()
//     free  --------------> with the  -------------------> sum under way
//       ^                    model                              |
//       +--------- settle(): the sum is added to `sums` --------+
//
//  1. `holds` is the block in a buffer of weights, or the one that is on its
//     way; `arrived` says that it is there with its head.
//  2. A buffer is not asked for another block while it is taken, or before its
//     block has arrived.
//  3. The head of block b + 1 is saved when block b arrives, from its end. So
//     block b has arrived once before b + 1 (forward takes blocks in order).
//  4. In backward `head` is the gradient of the head of the block that was
//     ready last, which is the end of the next one's buffer.
//  5. sums[] of a unit has numbers of this step if summed[] says so. settle()
//     runs before the model writes into a buffer again.

#include "zero/blocks.h"

#include "base/base.h"
#include "device/device.h"
#include "device/vector.h"
#include "group/group.h"
#include "optim/offload.h"
#include "optim/rule.h"

#include <string.h>

// An element's offset in a buffer equals its offset in the vector modulo LINE.
// So products and sums take the same code path as on the whole vector.
enum { LINE = 64 };

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t grain_up(size_t at)
{
    return (at + RULE_BLOCK - 1) / RULE_BLOCK * RULE_BLOCK;
}

// The index of the vector's element `at` in its block's buffer.
static size_t place_in(const struct block *b, size_t at)
{
    return at - b->off / LINE * LINE;
}

// ---- open and close

static int find_blocks(struct blocks *k)
{
    const struct sync_job *job = &k->sync->job;
    const struct bucket *units = k->shards->all;
    int unit = k->shards->count; // units are listed from the end
    k->n = job->nbuckets;
    k->all = mem_alloc((size_t)k->n, sizeof *k->all);
    if (!k->all)
        return -1;
    for (int i = 0; i < k->n; i++) {
        const struct bucket *own = &job->buckets[k->n - 1 - i];
        struct block *b = &k->all[i];
        b->off = own->off;
        b->end = own->off + own->n;
        b->stop = least(grain_up(b->end), job->n);
        b->head = least(grain_up(b->off), b->stop);
        b->unit = b->head < b->stop ? --unit : -1;
        b->buffer = i == 0 ? 0 : i == k->n - 1 ? BLOCK_BUFFERS - 1 : 1 + i % 2;
        CHECK(b->unit < 0 || (unit >= 0 && units[unit].off == b->head));
    }
    return 0;
}

// Lays out the buffers of one kind in one array: at[] is where each begins.
// Returns how many elements the array needs.
static size_t layout_buffers(const struct blocks *k, size_t at[BLOCK_BUFFERS])
{
    size_t size[BLOCK_BUFFERS] = {0}, all = 0;
    for (int i = 0; i < k->n; i++) {
        const struct block *b = &k->all[i];
        size_t need = place_in(b, b->stop);
        if (need > size[b->buffer])
            size[b->buffer] = need;
    }
    for (int i = 0; i < BLOCK_BUFFERS; i++) {
        at[i] = all;
        all += (size[i] + LINE - 1) / LINE * LINE;
    }
    return all;
}

// Host memory for buffers. Other workers of this host can map it, unless the
// model is on a GPU, which copies from and to it (sync/copies.h).
static void *alloc_host(const struct blocks *k, size_t n, size_t size)
{
    struct device *dev = k->sync->job.dev;
    return device_is_host(dev) ? device_alloc_shared(dev, n, size)
                               : device_host_alloc(dev, n, size);
}

static void free_host(const struct blocks *k, void *p)
{
    struct device *dev = k->sync->job.dev;
    if (device_is_host(dev))
        device_free(dev, p);
    else
        device_host_free(dev, p);
}

static int open_params(struct blocks *k)
{
    const char *folder = k->sync->job.folder;
    size_t n = k->shards->own;
    if (folder)
        k->file = offload_open(folder, 1, n);
    else
        k->params = mem_alloc(n, sizeof *k->params);
    return k->file || k->params ? 0 : -1;
}

static int open_weights(struct blocks *k)
{
    const struct sync_job *job = &k->sync->job;
    size_t at[BLOCK_BUFFERS], n = layout_buffers(k, at);
    size_t size = dtype_bytes(job->format);
    char *memory = k->sync->lent.weights = alloc_host(k, n, size);
    k->sync->lent.weight_bytes = n * size;
    k->heads = mem_alloc((size_t)k->n * RULE_BLOCK, size);
    if (!memory || !k->heads || open_params(k))
        return -1;
    for (int i = 0; i < BLOCK_BUFFERS; i++)
        k->weights[i] =
            (struct weight_buffer){.at = memory + at[i] * size, .holds = -1};
    return 0;
}

static int open_grads(struct blocks *k)
{
    size_t at[BLOCK_BUFFERS], n = layout_buffers(k, at);
    float *memory = k->sync->lent.grads = alloc_host(k, n, sizeof *memory);
    k->sync->lent.grad_bytes = n * sizeof *memory;
    k->head = mem_alloc(RULE_BLOCK, sizeof *k->head);
    k->sums = mem_alloc(k->shards->own, sizeof *k->sums);
    k->summed = mem_alloc((size_t)k->shards->count, sizeof *k->summed);
    if (!memory || !k->head || !k->sums || !k->summed)
        return -1;
    for (int i = 0; i < BLOCK_BUFFERS; i++)
        k->grads[i] = (struct grad_buffer){.at = memory + at[i], .sums = -1};
    return 0;
}

int blocks_open(struct blocks *k, struct sync *s, const struct shards *shards,
                struct scatter *scatter)
{
    k->sync = s;
    k->shards = shards;
    k->scatter = scatter;
    return find_blocks(k) || open_grads(k) ||
                   (s->lends_params && open_weights(k))
               ? -1
               : 0;
}

int blocks_share(const struct blocks *k)
{
    struct group *g = k->sync->group;
    const struct sync_lent *lent = &k->sync->lent;
    if (lent->weights && group_share(g, lent->weights, lent->weight_bytes))
        return -1;
    return group_share(g, lent->grads, lent->grad_bytes);
}

void blocks_close(struct blocks *k)
{
    if (!k->sync)
        return;
    free_host(k, k->sync->lent.weights);
    free_host(k, k->sync->lent.grads);
    mem_free(k->all);
    mem_free(k->heads);
    mem_free(k->head);
    mem_free(k->params);
    offload_close(&k->file);
    mem_free(k->sums);
    mem_free(k->summed);
}

// ---- weights

int blocks_params(const struct blocks *k, size_t at, bool changes, size_t *n,
                  float **own)
{
    float *const in_memory[OPTIM_MAX_SLOTS] = {k->params};
    float *found[OPTIM_MAX_SLOTS];
    if (offload_take(k->file, in_memory, at, changes, n, found))
        return -1;
    *own = found[0];
    return 0;
}

// Casts this worker's chunk of a unit into a buffer of its block.
static int fill_own(const struct blocks *k, const struct block *block,
                    char *buffer)
{
    const struct unit *u = &k->shards->units[block->unit];
    const struct bucket *own = &u->own;
    enum dtype format = k->sync->job.format;
    for (size_t at = 0, n; at < own->n; at += n) {
        float *params;
        n = own->n - at;
        if (blocks_params(k, u->at + at, false, &n, &params))
            return -1;
        vector_cast(buffer +
                        place_in(block, own->off + at) * dtype_bytes(format),
                    format, params, DTYPE_F32, n);
    }
    return 0;
}

// Begin to gather block b, unless it is there or on its way.
static int ask(struct blocks *k, int b)
{
    const struct block *block = &k->all[b];
    struct weight_buffer *f = &k->weights[block->buffer];
    enum dtype format = k->sync->job.format;
    size_t size = dtype_bytes(format);
    if (f->holds == b)
        return 0;
    CHECK(!f->taken && (f->holds < 0 || f->arrived));
    f->holds = b;
    f->arrived = false;
    if (block->unit < 0)
        return 0;
    const struct bucket *all = &k->shards->all[block->unit];
    struct group_vector v = {
        .data = f->at + place_in(block, all->off) * size,
        .n = all->n,
        .type = format,
        .wire = format,
        .scale = 1,
    };
    return fill_own(k, block, f->at)
               ? -1
               : group_all_gather(k->sync->group, &v, &f->ticket);
}

// Wait for block b. Copy its head in front of it, and save the head of the next
// block.
static int await(struct blocks *k, int b)
{
    const struct block *block = &k->all[b];
    struct weight_buffer *f = &k->weights[block->buffer];
    size_t size = dtype_bytes(k->sync->job.format), apart = RULE_BLOCK * size;
    if (f->arrived)
        return 0;
    if (block->unit >= 0 && group_await(k->sync->group, f->ticket))
        return -1;
    memcpy(f->at + place_in(block, block->off) * size,
           k->heads + (size_t)b * apart, (block->head - block->off) * size);
    if (b + 1 < k->n)
        memcpy(k->heads + (size_t)(b + 1) * apart,
               f->at + place_in(block, block->end) * size,
               (block->stop - block->end) * size);
    f->arrived = true;
    return 0;
}

// Begin to gather the block after the one that was taken last, if its buffer is
// free.
static int ask_ahead(struct blocks *k)
{
    int b = k->newest + (k->backward ? -1 : 1);
    if (!k->sync->overlap || b < 0 || b == k->n)
        return 0;
    const struct weight_buffer *f = &k->weights[k->all[b].buffer];
    return f->taken ? 0 : ask(k, b);
}

static int take_weights(struct blocks *k, int b, struct sync_place *out)
{
    const struct block *block = &k->all[b];
    struct weight_buffer *f = &k->weights[block->buffer];
    if (ask(k, b))
        return -1;
    f->taken = true;
    if (ask_ahead(k) || await(k, b))
        return -1;
    out->weights =
        f->at + place_in(block, block->off) * dtype_bytes(k->sync->job.format);
    return 0;
}

// ---- gradients

// Wait for the sum in a buffer, or decode it there, and add this worker's chunk
// of it to the sums of earlier micro-batches.
static int settle(struct blocks *k, struct grad_buffer *f)
{
    if (f->sums < 0)
        return 0;
    const struct block *block = &k->all[f->sums];
    const struct unit *u = &k->shards->units[block->unit];
    float *own = f->at + place_in(block, u->own.off);
    f->sums = -1;
    if (group_await(k->sync->group, f->ticket) ||
        (!k->scatter->whole &&
         scatter_take(k->scatter, k->sync, block->unit, own)))
        return -1;
    bool *summed = &k->summed[block->unit];
    if (*summed)
        vector_add(k->sums + u->at, own, DTYPE_F32, u->own.n);
    else
        memcpy(k->sums + u->at, own, u->own.n * sizeof *own);
    *summed = true;
    return 0;
}

int blocks_settle(struct blocks *k)
{
    for (int i = 0; i < BLOCK_BUFFERS; i++)
        if (settle(k, &k->grads[i]))
            return -1;
    return 0;
}

// Begin to sum the gradients of a unit.
static int send(struct blocks *k, int unit, float *grads, uint64_t *ticket)
{
    if (!k->scatter->whole)
        return scatter_send(k->scatter, k->sync, unit, grads, false, ticket);
    struct group_vector v = group_floats(grads, k->shards->all[unit].n);
    v.wire = k->sync->job.settings->wire;
    v.scale = k->sync->scale;
    return group_reduce_scatter(k->sync->group, &v, ticket);
}

int blocks_ready(struct blocks *k, int b)
{
    const struct block *block = &k->all[b];
    struct grad_buffer *f = &k->grads[block->buffer];
    memcpy(f->at + place_in(block, block->end), k->head,
           (block->stop - block->end) * sizeof *k->head);
    memcpy(k->head, f->at + place_in(block, block->off),
           (block->head - block->off) * sizeof *k->head);
    if (block->unit < 0)
        return 0;
    f->sums = b;
    return send(k, block->unit, f->at + place_in(block, block->head),
                &f->ticket) ||
                   (!k->sync->overlap && settle(k, f))
               ? -1
               : 0;
}

// ---- both

int blocks_take(struct blocks *k, int b, bool backward, struct sync_place *out)
{
    const struct block *block = &k->all[b];
    k->newest = b;
    k->backward = backward;
    *out = (struct sync_place){NULL, NULL};
    if (k->sync->lends_params && take_weights(k, b, out))
        return -1;
    if (!backward)
        return 0;
    struct grad_buffer *f = &k->grads[block->buffer];
    out->grads = f->at + place_in(block, block->off);
    return settle(k, f);
}

int blocks_give(struct blocks *k, int b)
{
    if (!k->sync->lends_params)
        return 0;
    k->weights[k->all[b].buffer].taken = false;
    return ask_ahead(k);
}

void blocks_forget(struct blocks *k, bool updated)
{
    memset(k->summed, 0, (size_t)k->shards->count * sizeof *k->summed);
    for (int i = 0; updated && i < BLOCK_BUFFERS; i++)
        k->weights[i].holds = -1;
}
