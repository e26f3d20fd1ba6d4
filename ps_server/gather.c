// gather.c - adds slices block by block. A block stays in the first-level cache
// until its sum is complete: it is added, squared and cast down there, read and
// written once.

#include "ps_server/gather.h"

#include "base/base.h"
#include "device/vector.h"
#include "message/message.h"
#include "optim/optim.h"
#include "ps_server/store.h"
#include "ps_server/thread_pool.h"

#include <string.h>

enum { BLOCK = 4096, PART = 1 << 16 }; // elements
enum { HELD = 1, ADDED = 2 };
enum { MAX_PARTS = (64 << 20) / 4 / PART + 1 }; // of the largest slice

int gather_open(struct gather *g, int world)
{
    g->held = mem_alloc((size_t)world, sizeof *g->held);
    g->here = mem_alloc((size_t)world, 1);
    return g->held && g->here ? 0 : -1;
}

void gather_clear(struct gather *g, int world)
{
    for (int t = 0; t < world; t++) {
        if (g->here[t] == HELD)
            message_drop(g->held[t]);
        g->here[t] = 0;
    }
    buffer_unref(g->sum);
    g->sum = NULL;
    g->added = g->come = 0;
}

void gather_close(struct gather *g, int world)
{
    if (g->held && g->here)
        gather_clear(g, world);
    mem_free(g->held);
    mem_free(g->here);
}

void gather_take(struct gather *g, int order, struct message *p)
{
    g->held[order] = p;
    g->here[order] = HELD;
    g->come++;
}

struct addition {
    const struct gather *g;
    enum dtype wire;
    int from, to; // places in the order
    size_t n;
    float *sum;    // NULL: nobody needs it
    void *half;    // NULL: the result stays fp32
    bool squaring; // the sum is complete: also compute its squares
    double squares[MAX_PARTS];
};

static void add_part(void *ctx, size_t part)
{
    struct addition *a = ctx;
    float block[BLOCK];
    size_t width = dtype_bytes(a->wire), begin = part * PART;
    size_t end = a->n - begin < PART ? a->n : begin + PART;
    double squares = 0;
    for (size_t at = begin; at < end; at += BLOCK) {
        size_t n = end - at < BLOCK ? end - at : BLOCK;
        float *sum = a->sum ? a->sum + at : block;
        for (int t = a->from; t < a->to; t++) {
            const char *from = a->g->held[t]->data;
            from += at * width;
            if (t == 0)
                vector_cast(sum, DTYPE_F32, from, a->wire, n);
            else
                vector_add(sum, from, a->wire, n);
        }
        if (a->half)
            vector_cast((char *)a->half + at * width, a->wire, sum, DTYPE_F32,
                        n);
        if (a->squaring)
            squares += optim_sum_squares(sum, n);
    }
    a->squares[part] = squares;
}

static void add(struct gather *g, struct thread_pool *threads,
                struct addition *a)
{
    size_t parts = (a->n + PART - 1) / PART;
    CHECK(parts <= MAX_PARTS);
    thread_pool_run(threads, add_part, a, parts);
    for (int t = a->from; t < a->to; t++) {
        message_drop(g->held[t]);
        g->here[t] = ADDED;
    }
    g->squares = 0;
    for (size_t i = 0; i < parts; i++)
        g->squares += a->squares[i];
}

int gather_add(struct gather *g, const struct store *store, int need, size_t n,
               struct buffer **out)
{
    int from = g->sum ? g->added : 0, to = g->added;
    while (to < need && g->here[to])
        to++;
    enum dtype wire = store->job->wire;
    bool complete = to == need, more = to > g->added;
    bool keep = !store->job->worker_updates;
    bool half = complete && !keep && wire != DTYPE_F32;
    struct buffer *reply = NULL;
    g->added = to;
    if (!more || (to == 1 && !complete))
        return 0; // the first slice stands for the sum until the second comes
    if (!half && !g->sum && !(g->sum = buffer_get(store->pool)))
        return -1;
    if (half && !(reply = buffer_get(store->half)))
        return -1;
    struct addition a = {.g = g,
                         .wire = wire,
                         .from = from,
                         .to = to,
                         .n = n,
                         .sum = g->sum ? g->sum->data : NULL,
                         .half = reply ? reply->data : NULL,
                         .squaring = complete && keep};
    add(g, store->threads, &a);
    if (!complete || keep)
        return 0;
    *out = half ? reply : g->sum;
    if (half)
        buffer_unref(g->sum);
    g->sum = NULL;
    return 0;
}

const struct message *gather_due(const struct gather *g, int need)
{
    return g->added < need && g->here[g->added] ? g->held[g->added] : NULL;
}

void gather_pass(struct gather *g)
{
    message_drop(g->held[g->added]);
    g->here[g->added++] = ADDED;
}
