// shm_steps.c - a verb in shared memory: the parts of a member in each step.

#include "horovod_ring/shm_steps.h"

#include "device/vector.h"
#include "horovod_ring/carriers.h"

#include <string.h>

// In elements: the longest short vector; a block, which stays in the
// first-level cache; what a thread takes at a time. Several threads are used
// for long vectors only: starting them takes as long as summing a short vector.
enum { SHORT = 2048, BLOCK = 4096, PIECE = 4 * BLOCK };

// ---- loops over several members' vectors

// As ring_wire.h describes: numbers are scaled, and each sum of two is rounded.
static void sum_half(const struct group_vector *v, char *const *dst, int d,
                     const char *const *src, int k, size_t n)
{
    float scaled[BLOCK];
    uint16_t half[BLOCK];
    vector_cast_scaled(half, v->wire, (const float *)src[0], v->scale, n);
    for (int j = 1; j < k; j++) {
        vector_cast_scaled(scaled, DTYPE_F32, (const float *)src[j], v->scale,
                           n);
        vector_add_into_wire(half, v->wire, scaled, n);
    }
    for (int j = 0; j < d; j++)
        vector_cast(dst[j], DTYPE_F32, half, v->wire, n);
}

static void sum_doubles(char *const *dst, int d, const char *const *src, int k,
                        size_t n)
{
    double sum[BLOCK];
    memcpy(sum, src[0], n * sizeof *sum);
    for (int j = 1; j < k; j++)
        vector_add_doubles(sum, (const double *)src[j], n);
    for (int j = 0; j < d; j++)
        memcpy(dst[j], sum, n * sizeof *sum);
}

static void sum_block(const struct group_vector *v, char *const *dst, int d,
                      const char *const *src, int k, size_t n)
{
    if (group_casts(v))
        sum_half(v, dst, d, src, k, n);
    else if (v->type == DTYPE_F64)
        sum_doubles(dst, d, src, k, n);
    else
        vector_sum((float *const *)dst, d, (const float *const *)src, k, n);
}

// Sums the n elements from element i on.
static void sum_part(const struct group_vector *v, char *const *dst, int d,
                     const char *const *src, int k, size_t i, size_t n)
{
    char *to[COUNTERS_WORLD];
    const char *from[COUNTERS_WORLD];
    size_t skip = i * dtype_bytes(v->type);
    for (int j = 0; j < d; j++)
        to[j] = dst[j] + skip;
    for (int j = 0; j < k; j++)
        from[j] = src[j] + skip;
    sum_block(v, to, d, from, k, n);
}

// Sets each of the d vectors dst to the sum of the k vectors src, which are
// added in that order, in the type and wire of `v`. The bits are those of a
// ring of messages. A dst may be a src. The vectors have n elements.
static void sum_vectors(const struct group_vector *v, char *const *dst, int d,
                        const char *const *src, int k, size_t n)
{
    if (n <= BLOCK) {
        sum_block(v, dst, d, src, k, n);
        return;
    }
#pragma omp parallel for if (n > 2 * PIECE) schedule(static)
    for (size_t i = 0; i < n; i += BLOCK)
        sum_part(v, dst, d, src, k, i, n - i < BLOCK ? n - i : BLOCK);
}

static void copy(const struct group_vector *v, char *dst, const char *src,
                 size_t n)
{
    size_t size = dtype_bytes(v->type);
    if (n <= BLOCK) {
        memcpy(dst, src, n * size);
        return;
    }
#pragma omp parallel for if (n > 2 * PIECE) schedule(static)
    for (size_t i = 0; i < n; i += PIECE)
        memcpy(dst + i * size, src + i * size,
               (n - i < PIECE ? n - i : PIECE) * size);
}

// Rounds n elements at `at`: casts them to v's wire format and back.
static void round_trip(const struct group_vector *v, char *at, size_t n)
{
    if (!group_casts(v))
        return;
#pragma omp parallel for if (n > 2 * PIECE) schedule(static)
    for (size_t i = 0; i < n; i += BLOCK) {
        uint16_t half[BLOCK];
        float *block = (float *)at + i;
        size_t len = n - i < BLOCK ? n - i : BLOCK;
        vector_cast(half, v->wire, block, DTYPE_F32, len);
        vector_cast(block, DTYPE_F32, half, v->wire, len);
    }
}

void steps_plan(struct task *t, const struct members *m,
                const struct group_op *op, struct region *regions)
{
    size_t n = op->vector.n, size = dtype_bytes(op->vector.type);
    *t = (struct task){.m = m, .op = *op, .way = WHOLE, .steps = 1};
    if (n <= SHORT)
        return;
    t->region = regions_find(regions, op->vector.data, n * size);
    t->way = t->region ? MAPPED : SLICES;
    if (t->region)
        return;
    size_t longest = group_longest(&op->vector, m->grain, m->size);
    t->most = COUNTERS_PLACE / size / (size_t)m->size;
    t->steps = (longest + t->most - 1) / t->most;
}

// ---- where numbers are

// The slice of a chunk on which a step works; it may be empty.
static struct group_chunk slice(const struct task *t, const struct cursor *c,
                                int chunk)
{
    struct group_chunk k =
        group_chunk_of(&t->op.vector, t->m->grain, t->m->size, chunk);
    if (t->way != SLICES)
        return k;
    size_t skip = c->part * t->most;
    skip = skip < k.n ? skip : k.n;
    size_t left = k.n - skip;
    return (struct group_chunk){.off = k.off + skip,
                                .n = left < t->most ? left : t->most};
}

// Where the others see member `rank`'s slice of a chunk; the slice begins at
// element `off`.
static char *shown_at(const struct task *t, const struct cursor *c, int rank,
                      int chunk, size_t off)
{
    size_t size = dtype_bytes(t->op.vector.type);
    if (t->way == MAPPED)
        return t->region->at[rank] +
               ((char *)group_at(&t->op.vector, off) - t->region->data);
    size_t at = t->way == WHOLE ? off : (size_t)chunk * t->most;
    return counters_place(t->m->counters, rank, c->places) + at * size;
}

static bool is_copied(const struct task *t)
{
    return t->way != MAPPED || t->region->mirrored;
}

// How many pieces are copied one by one: the whole vector is one piece if its
// chunks are next to each other, else each chunk is one.
static int pieces(const struct task *t)
{
    bool apart = t->way == SLICES || t->op.verb == GROUP_ALL_GATHER;
    return apart ? t->m->size : 1;
}

static struct group_chunk piece(const struct task *t, const struct cursor *c,
                                int k)
{
    return pieces(t) > 1 ? slice(t, c, k)
                         : (struct group_chunk){0, t->op.vector.n};
}

// ---- the first part of a step: show the others this member's numbers

void steps_show(const struct task *t, const struct cursor *c)
{
    bool gathers = t->op.verb == GROUP_ALL_GATHER;
    if (t->op.verb == GROUP_BROADCAST && t->op.peer != t->m->rank)
        return;
    for (int k = 0; k < pieces(t); k++) {
        if (gathers && k != t->m->rank)
            continue;
        struct group_chunk at = piece(t, c, k);
        char *own = group_at(&t->op.vector, at.off);
        if (!group_is_sum(t->op.verb))
            round_trip(&t->op.vector, own, at.n);
        if (is_copied(t))
            copy(&t->op.vector, shown_at(t, c, t->m->rank, k, at.off), own,
                 at.n);
    }
}

// ---- the second part: read the numbers that the others show

// Sums one chunk's slice into the numbers that all members show, or the root
// shows, or into this member's vector.
enum target { EVERYONE, ROOT, OWN };

static void sum_chunk(const struct task *t, const struct cursor *c, int chunk,
                      enum target into)
{
    struct group_chunk at = slice(t, c, chunk);
    int root = t->op.peer, d = into == EVERYONE ? t->m->size : 1;
    int first = (t->op.verb == GROUP_REDUCE ? root : chunk) + 1;
    char *v[COUNTERS_WORLD], *only;
    if (at.n == 0)
        return;
    for (int j = 0; j < t->m->size; j++)
        v[j] = shown_at(t, c, (first + j) % t->m->size, chunk, at.off);
    only = into == ROOT ? shown_at(t, c, root, chunk, at.off)
                        : group_at(&t->op.vector, at.off);
    sum_vectors(&t->op.vector, d > 1 ? v : &only, d, (const char *const *)v,
                t->m->size, at.n);
}

static void sum(const struct task *t, const struct cursor *c)
{
    enum group_verb verb = t->op.verb;
    if (verb == GROUP_REDUCE_SCATTER)
        sum_chunk(t, c, t->m->rank, OWN);
    else if (t->way != WHOLE)
        sum_chunk(t, c, t->m->rank, verb == GROUP_ALL_REDUCE ? EVERYONE : ROOT);
    else if (verb == GROUP_ALL_REDUCE || t->op.peer == t->m->rank)
        for (int k = 0; k < t->m->size; k++)
            sum_chunk(t, c, k, OWN);
}

static void fetch(const struct task *t, const struct cursor *c)
{
    bool gathers = t->op.verb == GROUP_ALL_GATHER;
    for (int k = 0; k < pieces(t); k++) {
        int from = gathers ? k : t->op.peer;
        struct group_chunk at = piece(t, c, k);
        if (from != t->m->rank)
            copy(&t->op.vector, group_at(&t->op.vector, at.off),
                 shown_at(t, c, from, k, at.off), at.n);
    }
}

void steps_work(const struct task *t, const struct cursor *c)
{
    (group_is_sum(t->op.verb) ? sum : fetch)(t, c);
}

// ---- the third part: this member's result is complete

void steps_take_back(const struct task *t, const struct cursor *c)
{
    bool mine = t->op.verb == GROUP_ALL_REDUCE ||
                (t->op.verb == GROUP_REDUCE && t->op.peer == t->m->rank);
    if (!mine || !is_copied(t) || t->way == WHOLE)
        return;
    for (int k = 0; k < pieces(t); k++) {
        struct group_chunk at = piece(t, c, k);
        copy(&t->op.vector, group_at(&t->op.vector, at.off),
             shown_at(t, c, t->m->rank, k, at.off), at.n);
    }
}

bool steps_await_others(const struct task *t)
{
    enum group_verb verb = t->op.verb;
    if (verb == GROUP_BROADCAST && t->op.peer != t->m->rank)
        return false;
    bool root = verb == GROUP_REDUCE && t->op.peer == t->m->rank;
    return t->way == MAPPED ||
           (t->way == SLICES && (verb == GROUP_ALL_REDUCE || root));
}

// ---- the law

size_t ring_shm_elements(const struct group_op *op, size_t grain, int rank,
                         int world, enum direction d)
{
    size_t n = op->vector.n, others = (size_t)world - 1;
    size_t own = group_chunk_of(&op->vector, grain, world, rank).n;
    bool root = rank == op->peer, brief = n <= SHORT;
    switch (op->verb) {
    case GROUP_ALL_REDUCE:
        return brief ? others * n : others * own + n - own;
    case GROUP_REDUCE_SCATTER:
        return d == IN ? others * own : n - own;
    case GROUP_ALL_GATHER:
        return d == IN ? n - own : others * own;
    case GROUP_BROADCAST:
        return (d == IN) == root ? 0 : root ? others * n : n;
    case GROUP_ALL_TO_ALL:
        return group_exchanged(op, grain, rank, world, d == OUT);
    default:
        break;
    }
    if (brief)
        return (d == IN) != root ? 0 : root ? others * n : n;
    return d == IN ? others * own + (root ? n - own : 0)
                   : n - own + (root ? 0 : own);
}
