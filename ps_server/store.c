// store.c - a server's shard: rows of parameters, slots of the optimiser.

#include "ps_server/store.h"

#include "base/base.h"
#include "ps_server/thread_pool.h"

#include <string.h>

// A thread takes PART elements at a time. It updates them in blocks of BLOCK
// elements, which stay in its cache.
enum { PART = 1 << 16, BLOCK = 1 << 14 };

int store_open(struct store **out, const struct ps_job *job,
               struct thread_pool *threads)
{
    struct store *s = mem_alloc(1, sizeof *s);
    if (!s)
        return -1;
    s->job = job;
    s->threads = threads;
    if (shard_make(&s->shard, job->n, job->slice, job->servers, job->index) ||
        buffers_open(&s->pool, job->slice * sizeof(float)) ||
        buffers_open(&s->half, job->slice * sizeof(uint16_t)))
        goto close_store;
    s->nrows = shard_rows(&s->shard);
    s->rows = mem_alloc((size_t)s->nrows + 1, sizeof *s->rows);
    if (!s->rows)
        goto close_store;
    for (int r = 0; r < s->nrows; r++) {
        s->rows[r].at = shard_slice(&s->shard, r);
        s->rows[r].params = buffer_get(s->pool);
        if (!s->rows[r].params)
            goto close_store;
    }
    *out = s;
    return 0;
close_store:
    store_close(&s);
    return -1;
}

void store_close(struct store **store)
{
    struct store *s = *store;
    if (!s)
        return;
    for (int r = 0; s->rows && r < s->nrows; r++)
        buffer_unref(s->rows[r].params);
    for (int i = 0; i < OPTIM_MAX_SLOTS; i++)
        mem_free(s->slots[i]);
    mem_free(s->rows);
    buffers_close(&s->pool);
    buffers_close(&s->half);
    mem_free(s);
    *store = NULL;
}

static int need_slot(struct store *s, int i)
{
    if (!s->slots[i])
        s->slots[i] = mem_alloc(shard_elements(&s->shard), sizeof(float));
    return s->slots[i] ? 0 : -1;
}

// The buffer for new parameters of the row: the present one, or a new one if
// the present one is still being sent. NULL after fail().
static struct buffer *writable(struct store *s, struct row *r)
{
    return buffer_shared(r->params) ? buffer_get(s->pool) : r->params;
}

static void replace(struct row *r, struct buffer *params)
{
    if (params != r->params)
        buffer_unref(r->params);
    r->params = params;
}

int store_set(struct store *s, enum ps_what what, int row, const void *data,
              float *elsewhere)
{
    if (row == 0)
        s->next_set[what] = 0;
    if (row != s->next_set[what])
        return fail("SET of row %d, but row %d is due", row, s->next_set[what]);
    struct row *r = &s->rows[row];
    size_t bytes = r->at.n * sizeof(float);
    if (what == PS_PARAMS) {
        struct buffer *to = writable(s, r);
        if (!to)
            return -1;
        memcpy(to->data, data, bytes);
        replace(r, to);
    } else if (elsewhere) {
        memcpy(elsewhere, data, bytes);
    } else {
        int slot = what - PS_SLOT0;
        if (need_slot(s, slot))
            return -1;
        memcpy(s->slots[slot] + r->at.local, data, bytes);
    }
    s->next_set[what]++;
    if (s->next_set[what] == s->nrows) {
        s->next_set[what] = 0;
        s->sets[what]++;
    }
    return 0;
}

struct buffer *store_get(struct store *s, enum ps_what what, int row,
                         const float *elsewhere)
{
    const struct row *r = &s->rows[row];
    if (what == PS_PARAMS) {
        buffer_ref(r->params);
        return r->params;
    }
    struct buffer *b = buffer_get(s->pool);
    if (!elsewhere && s->slots[what - PS_SLOT0])
        elsewhere = s->slots[what - PS_SLOT0] + r->at.local;
    if (b && elsewhere)
        memcpy(b->data, elsewhere, r->at.n * sizeof(float));
    else if (b)
        memset(b->data, 0, r->at.n * sizeof(float));
    return b;
}

struct update {
    struct store *s;
    const struct row *row;
    struct buffer *to; // the row's parameters, or the buffer replacing them
    const float *grads;
    int step;
    float lr, scale;
};

static void update_part(void *ctx, size_t part)
{
    const struct update *u = ctx;
    size_t begin = part * PART;
    size_t end = u->row->at.n - begin < PART ? u->row->at.n : begin + PART;
    const float *old = u->row->params->data;
    float *new = u->to->data, *slots[OPTIM_MAX_SLOTS];
    for (size_t at = begin; at < end; at += BLOCK) {
        size_t n = end - at < BLOCK ? end - at : BLOCK;
        if (new != old)
            memcpy(new + at, old + at, n * sizeof *new);
        for (int i = 0; i < OPTIM_MAX_SLOTS; i++)
            slots[i] =
                u->s->slots[i] ? u->s->slots[i] + u->row->at.local + at : NULL;
        optim_update(&u->s->job->optim, new + at, slots, u->grads + at,
                     u->row->at.off + at, n, u->step, u->lr, u->scale);
    }
}

int store_update(struct store *s, int row, const float *grads, int step,
                 float lr, float scale)
{
    struct row *r = &s->rows[row];
    for (int i = 0; i < optim_slots(&s->job->optim); i++)
        if (need_slot(s, i))
            return -1;
    struct buffer *to = writable(s, r);
    if (!to)
        return -1;
    struct update u = {s, r, to, grads, step, lr, scale};
    thread_pool_run(s->threads, update_part, &u, (r->at.n + PART - 1) / PART);
    replace(r, to);
    r->version++;
    return 0;
}
