// shm_steps.c - a verb in shared memory: the parts of a member in each step.

#include "horovod_ring/shm_steps.h"

#include "horovod_ring/carriers.h"
#include "horovod_ring/pass.h"

enum { SHORT = 2048 }; // elements of the longest short vector

void steps_plan(struct task *t, const struct members *m,
                const struct group_op *op, struct region *regions)
{
    size_t n = op->vector.n, size = dtype_bytes(op->vector.type);
    *t = (struct task){.op = *op, .way = WHOLE, .steps = 1};
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
static struct group_chunk slice(const struct members *m, const struct task *t,
                                const struct cursor *c, int chunk)
{
    struct group_chunk k =
        group_chunk_of(&t->op.vector, m->grain, m->size, chunk);
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
static char *shown_at(const struct members *m, const struct task *t,
                      const struct cursor *c, int rank, int chunk, size_t off)
{
    size_t size = dtype_bytes(t->op.vector.type);
    if (t->way == MAPPED)
        return t->region->at[rank] +
               ((char *)group_at(&t->op.vector, off) - t->region->data);
    size_t at = t->way == WHOLE ? off : (size_t)chunk * t->most;
    return counters_place(m->counters, rank, c->places) + at * size;
}

static bool is_copied(const struct task *t)
{
    return t->way != MAPPED || t->region->mirrored;
}

// How many pieces are copied one by one: the whole vector is one piece if its
// chunks are next to each other, else each chunk is one.
static int pieces(const struct members *m, const struct task *t)
{
    bool apart = t->way == SLICES || t->op.verb == GROUP_ALL_GATHER;
    return apart ? m->size : 1;
}

static struct group_chunk piece(const struct members *m, const struct task *t,
                                const struct cursor *c, int k)
{
    return pieces(m, t) > 1 ? slice(m, t, c, k)
                            : (struct group_chunk){0, t->op.vector.n};
}

// ---- the first part of a step: show the others this member's numbers

void steps_show(const struct members *m, const struct task *t,
                const struct cursor *c)
{
    bool gathers = t->op.verb == GROUP_ALL_GATHER;
    if (t->op.verb == GROUP_BROADCAST && t->op.peer != m->rank)
        return;
    for (int k = 0; k < pieces(m, t); k++) {
        if (gathers && k != m->rank)
            continue;
        struct group_chunk at = piece(m, t, c, k);
        char *own = group_at(&t->op.vector, at.off);
        if (!group_is_sum(t->op.verb))
            pass_round(&t->op.vector, own, at.n);
        if (is_copied(t))
            pass_copy(&t->op.vector, shown_at(m, t, c, m->rank, k, at.off), own,
                      at.n);
    }
}

// ---- the second part: read the numbers that the others show

// Sums one chunk's slice into the numbers that all members show, or the root
// shows, or into this member's vector.
enum target { EVERYONE, ROOT, OWN };

static void sum_chunk(const struct members *m, const struct task *t,
                      const struct cursor *c, int chunk, enum target into)
{
    struct group_chunk at = slice(m, t, c, chunk);
    int root = t->op.peer, d = into == EVERYONE ? m->size : 1;
    int first = (t->op.verb == GROUP_REDUCE ? root : chunk) + 1;
    char *v[PASS_WORLD], *only;
    if (at.n == 0)
        return;
    for (int j = 0; j < m->size; j++)
        v[j] = shown_at(m, t, c, (first + j) % m->size, chunk, at.off);
    only = into == ROOT ? shown_at(m, t, c, root, chunk, at.off)
                        : group_at(&t->op.vector, at.off);
    (t->way == WHOLE ? pass_sum_block
                     : pass_sum)(&t->op.vector, d > 1 ? v : &only, d,
                                 (const char *const *)v, m->size, at.n);
}

static void sum(const struct members *m, const struct task *t,
                const struct cursor *c)
{
    enum group_verb verb = t->op.verb;
    if (verb == GROUP_REDUCE_SCATTER)
        sum_chunk(m, t, c, m->rank, OWN);
    else if (t->way != WHOLE)
        sum_chunk(m, t, c, m->rank, verb == GROUP_ALL_REDUCE ? EVERYONE : ROOT);
    else if (verb == GROUP_ALL_REDUCE || t->op.peer == m->rank)
        for (int k = 0; k < m->size; k++)
            sum_chunk(m, t, c, k, OWN);
}

static void fetch(const struct members *m, const struct task *t,
                  const struct cursor *c)
{
    bool gathers = t->op.verb == GROUP_ALL_GATHER;
    for (int k = 0; k < pieces(m, t); k++) {
        int from = gathers ? k : t->op.peer;
        struct group_chunk at = piece(m, t, c, k);
        if (from != m->rank)
            pass_copy(&t->op.vector, group_at(&t->op.vector, at.off),
                      shown_at(m, t, c, from, k, at.off), at.n);
    }
}

void steps_work(const struct members *m, const struct task *t,
                const struct cursor *c)
{
    (group_is_sum(t->op.verb) ? sum : fetch)(m, t, c);
}

// ---- the third part: this member's result is complete

// Copies sums that others have written over this member's shown numbers.
void steps_take_back(const struct members *m, const struct task *t,
                     const struct cursor *c)
{
    bool mine = t->op.verb == GROUP_ALL_REDUCE ||
                (t->op.verb == GROUP_REDUCE && t->op.peer == m->rank);
    if (!mine || !is_copied(t) || t->way == WHOLE)
        return;
    for (int k = 0; k < pieces(m, t); k++) {
        struct group_chunk at = piece(m, t, c, k);
        pass_copy(&t->op.vector, group_at(&t->op.vector, at.off),
                  shown_at(m, t, c, m->rank, k, at.off), at.n);
    }
}

// Whether others may still read or write the numbers that this member shows
// after it has done its own part. (A place is not written again before all have
// done theirs: ring_shm.c.)
bool steps_await_others(const struct members *m, const struct task *t)
{
    enum group_verb verb = t->op.verb;
    if (verb == GROUP_BROADCAST && t->op.peer != m->rank)
        return false;
    bool root = verb == GROUP_REDUCE && t->op.peer == m->rank;
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
