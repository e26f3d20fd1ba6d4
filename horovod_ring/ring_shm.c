// ring_shm.c - the verbs of group.h where all members are on one host: no ring
// at all.
//
// What a ring does with messages, memory does better: every member reads its
// own chunk out of all members' vectors where they are, and writes the sum into
// all of them, in one pass.
//
//     member          0    1    2        0    1    2
//     vectors       a0   a1   a2       A    A    A
//                   b0   b1   b2  ->   B    B    B
//                   c0   c1   c2       C    C    C
//                   READY              SUMMED
//
//     time     2 updates of a counter (counters.h) + bytes moved / bandwidth
//     payload  2(world-1)/world S out of and into each member, as the ring's
//
// The other verbs are parts of this: reduce_scatter writes a chunk into the
// member's own vector only, reduce into the root's; all_gather copies the
// others' chunks, broadcast the root's. One step is enough for that where
// vectors can be mapped (regions.h). Any other vector passes through the places
// in the members' slots: many steps, each of a slice of every chunk. A vector of
// at most SHORT elements goes through them whole, and is summed by everyone for
// himself, which saves the second update of a counter.
//
// Additions are in the ring's order, chunk c from member c+1 round to c, and so
// is the rounding of a 16-bit wire after each: the bits are those of ring_tcp.
// A 16-bit wire saves nothing here: memory is read and written in the vector's
// type, and counted so (ring_shm_elements()).
//
// There is no thread: data move inside the verbs and in group_await().

#include "horovod_ring/carriers.h"

#include "horovod_ring/counters.h"
#include "horovod_ring/pass.h"
#include "horovod_ring/regions.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "telemetry/span.h"

enum { SHORT = 2048 }; // elements

enum way { WHOLE, SLICES, MAPPED }; // through places: whole, in slices; mapped

// A verb on its way.
struct task {
    struct group_op op;
    enum way way;
    struct region *region; // MAPPED: what the vector is a part of
    size_t most;           // SLICES: elements of a slice of one chunk
    uint64_t steps;
};

// How far this member is. All members count the same steps.
struct cursor {
    uint64_t op, part; // the next step: a verb and which of its steps
    uint64_t step;     // steps so far
    uint64_t places;   // those of them that use places
};

struct shm {
    struct counters counters;
    struct region *regions;
    struct task *tasks; // verb k at k % depth
    uint64_t posted;
    struct cursor ready, summed, done;
    uint64_t placed;          // steps of all: the newest that uses a place, + 1
    uint64_t known[COUNTERS]; // what all members' counters are at least
    struct span_lane *lane;
};

// ---- where numbers are

static struct task *task_of(const struct group *g, const struct cursor *c)
{
    const struct shm *s = g->state;
    return &s->tasks[c->op % g->job.depth];
}

// The slice of a chunk that a step is about; may be empty.
static struct group_chunk slice(const struct group *g, const struct task *t,
                                const struct cursor *c, int chunk)
{
    struct group_chunk k =
        group_chunk(t->op.vector.n, g->job.grain, g->size, chunk);
    if (t->way != SLICES)
        return k;
    size_t skip = c->part * t->most;
    skip = skip < k.n ? skip : k.n;
    size_t left = k.n - skip;
    return (struct group_chunk){.off = k.off + skip,
                                .n = left < t->most ? left : t->most};
}

static char *own_at(const struct task *t, size_t off)
{
    return (char *)t->op.vector.data + off * dtype_bytes(t->op.vector.type);
}

// Where member `rank` shows its slice of a chunk, which begins at `off`.
static char *shown_at(const struct group *g, const struct task *t,
                      const struct cursor *c, int rank, int chunk, size_t off)
{
    const struct shm *s = g->state;
    size_t size = dtype_bytes(t->op.vector.type);
    if (t->way == MAPPED)
        return t->region->at[rank] + (own_at(t, off) - t->region->data);
    size_t at = t->way == WHOLE ? off : (size_t)chunk * t->most;
    return counters_place(&s->counters, rank, c->places) + at * size;
}

static bool is_copied(const struct task *t)
{
    return t->way != MAPPED || t->region->mirrored;
}

static bool is_sum(const struct task *t)
{
    return t->op.verb != GROUP_ALL_GATHER && t->op.verb != GROUP_BROADCAST;
}

// What is copied at once: the whole vector where its chunks are shown side by
// side, else its chunks one by one.
static int pieces(const struct group *g, const struct task *t)
{
    bool apart = t->way == SLICES || t->op.verb == GROUP_ALL_GATHER;
    return apart ? g->size : 1;
}

static struct group_chunk piece(const struct group *g, const struct task *t,
                                const struct cursor *c, int k)
{
    return pieces(g, t) > 1 ? slice(g, t, c, k)
                            : (struct group_chunk){0, t->op.vector.n};
}

// ---- the first part of a step: show the others this member's numbers

static void show(const struct group *g, const struct task *t,
                 const struct cursor *c)
{
    bool gathers = t->op.verb == GROUP_ALL_GATHER;
    if (t->op.verb == GROUP_BROADCAST && t->op.peer != g->rank)
        return;
    for (int k = 0; k < pieces(g, t); k++) {
        if (gathers && k != g->rank)
            continue;
        struct group_chunk at = piece(g, t, c, k);
        char *own = own_at(t, at.off);
        if (!is_sum(t))
            pass_round(&t->op.vector, own, at.n);
        if (is_copied(t))
            pass_copy(&t->op.vector, shown_at(g, t, c, g->rank, k, at.off), own,
                      at.n);
    }
}

// ---- the second: read what the others show

// One chunk's slice: into what everyone shows, or the root, or this vector.
enum target { EVERYONE, ROOT, OWN };

static void sum_chunk(const struct group *g, const struct task *t,
                      const struct cursor *c, int chunk, enum target into)
{
    struct group_chunk at = slice(g, t, c, chunk);
    int root = t->op.peer, d = into == EVERYONE ? g->size : 1;
    int first = (t->op.verb == GROUP_REDUCE ? root : chunk) + 1;
    char *v[PASS_WORLD], *only;
    if (at.n == 0)
        return;
    for (int j = 0; j < g->size; j++)
        v[j] = shown_at(g, t, c, (first + j) % g->size, chunk, at.off);
    only = into == ROOT ? shown_at(g, t, c, root, chunk, at.off)
                        : own_at(t, at.off);
    (t->way == WHOLE ? pass_sum_block
                     : pass_sum)(&t->op.vector, d > 1 ? v : &only, d,
                                 (const char *const *)v, g->size, at.n);
}

static void sum(const struct group *g, const struct task *t,
                const struct cursor *c)
{
    enum group_verb verb = t->op.verb;
    if (verb == GROUP_REDUCE_SCATTER)
        sum_chunk(g, t, c, g->rank, OWN);
    else if (t->way != WHOLE)
        sum_chunk(g, t, c, g->rank, verb == GROUP_ALL_REDUCE ? EVERYONE : ROOT);
    else if (verb == GROUP_ALL_REDUCE || t->op.peer == g->rank)
        for (int k = 0; k < g->size; k++)
            sum_chunk(g, t, c, k, OWN);
}

static void fetch(const struct group *g, const struct task *t,
                  const struct cursor *c)
{
    bool gathers = t->op.verb == GROUP_ALL_GATHER;
    for (int k = 0; k < pieces(g, t); k++) {
        int from = gathers ? k : t->op.peer;
        struct group_chunk at = piece(g, t, c, k);
        if (from != g->rank)
            pass_copy(&t->op.vector, own_at(t, at.off),
                      shown_at(g, t, c, from, k, at.off), at.n);
    }
}

// ---- the third: this member's result is complete

// Sums that others have written where they were shown.
static void take_back(const struct group *g, const struct task *t,
                      const struct cursor *c)
{
    bool mine = t->op.verb == GROUP_ALL_REDUCE ||
                (t->op.verb == GROUP_REDUCE && t->op.peer == g->rank);
    if (!mine || !is_copied(t) || t->way == WHOLE)
        return;
    for (int k = 0; k < pieces(g, t); k++) {
        struct group_chunk at = piece(g, t, c, k);
        pass_copy(&t->op.vector, own_at(t, at.off),
                  shown_at(g, t, c, g->rank, k, at.off), at.n);
    }
}

// Whether others still read or write what this member shows when it has done
// its own part. (Places are not written again before all have: may_show().)
static bool awaits_others(const struct group *g, const struct task *t)
{
    enum group_verb verb = t->op.verb;
    if (verb == GROUP_BROADCAST && t->op.peer != g->rank)
        return false;
    bool root = verb == GROUP_REDUCE && t->op.peer == g->rank;
    return t->way == MAPPED ||
           (t->way == SLICES && (verb == GROUP_ALL_REDUCE || root));
}

// ---- steps

static void pass_step(const struct group *g, struct cursor *c)
{
    const struct task *t = task_of(g, c);
    c->step++;
    c->places += t->way != MAPPED;
    if (++c->part == t->steps) {
        c->part = 0;
        c->op++;
    }
}

static bool all_have(struct shm *s, enum counter k, uint64_t goal)
{
    if (s->known[k] < goal)
        s->known[k] = counters_least(&s->counters, k);
    return s->known[k] >= goal;
}

// A place is filled again two steps later. A member is READY for a step that
// uses a place only after it has done its part in the one before: so once all
// were READY for that, nobody reads the place of the one before that any more.
static bool may_show(const struct group *g)
{
    struct shm *s = g->state;
    return task_of(g, &s->ready)->way == MAPPED || s->placed == 0 ||
           (s->summed.places == s->ready.places &&
            s->done.places + 1 >= s->ready.places &&
            all_have(s, READY, s->placed));
}

static bool may_sum(const struct group *g)
{
    struct shm *s = g->state;
    const struct task *t = task_of(g, &s->summed);
    uint64_t goal = s->summed.step + 1;
    return t->op.verb == GROUP_BROADCAST
               ? counters_read(&s->counters, t->op.peer, READY) >= goal
               : all_have(s, READY, goal);
}

static bool may_end(const struct group *g)
{
    struct shm *s = g->state;
    return !awaits_others(g, task_of(g, &s->done)) ||
           all_have(s, SUMMED, s->done.step + 1);
}

static void step_show(struct group *g)
{
    struct shm *s = g->state;
    const struct task *t = task_of(g, &s->ready);
    show(g, t, &s->ready);
    pass_step(g, &s->ready);
    if (t->way != MAPPED)
        s->placed = s->ready.step;
    counters_set(&s->counters, READY, s->ready.step);
}

static void step_sum(struct group *g)
{
    struct shm *s = g->state;
    const struct task *t = task_of(g, &s->summed);
    uint64_t began = s->lane ? now_ns() : 0;
    (is_sum(t) ? sum : fetch)(g, t, &s->summed);
    if (s->lane)
        span_add(s->lane, SPAN_ADD, (int)s->summed.op, began, now_ns());
    pass_step(g, &s->summed);
    if (t->way != WHOLE)
        counters_set(&s->counters, SUMMED, s->summed.step);
}

static void step_end(struct group *g)
{
    struct shm *s = g->state;
    const struct task *t = task_of(g, &s->done);
    uint64_t op = s->done.op;
    size_t size = dtype_bytes(t->op.vector.type);
    take_back(g, t, &s->done);
    pass_step(g, &s->done);
    if (s->done.op == op)
        return;
    g->moved.bytes_out +=
        ring_shm_elements(&t->op, g->job.grain, g->rank, g->size, OUT) * size;
    g->moved.bytes_in +=
        ring_shm_elements(&t->op, g->job.grain, g->rank, g->size, IN) * size;
}

size_t ring_shm_elements(const struct group_op *op, size_t grain, int rank,
                         int world, enum direction d)
{
    size_t n = op->vector.n, others = (size_t)world - 1;
    size_t own = group_chunk(n, grain, world, rank).n;
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
    default:
        break;
    }
    if (brief)
        return (d == IN) != root ? 0 : root ? others * n : n;
    return d == IN ? others * own + (root ? n - own : 0)
                   : n - own + (root ? 0 : own);
}

// ---- the carrier

static int shm_is_supported(const struct group_job *job, char why[128])
{
    return counters_possible(job->cluster, why);
}

static int shm_open(struct group *g)
{
    struct shm *s = g->state;
    s->lane = spans_lane(g->job.spans, g->name);
    s->tasks = mem_alloc(g->job.depth, sizeof *s->tasks);
    if (!s->tasks)
        return -1;
    return counters_open(&s->counters, g->job.cluster, g->name);
}

static int shm_share(struct group *g, void *data, size_t bytes)
{
    struct shm *s = g->state;
    return regions_add(&s->regions, g->job.cluster, g->job.dev, g->name, data,
                       bytes);
}

static int shm_begin(struct group *g, const struct group_op *op)
{
    struct shm *s = g->state;
    size_t n = op->vector.n, size = dtype_bytes(op->vector.type);
    struct task *t = &s->tasks[s->posted++ % g->job.depth];
    *t = (struct task){.op = *op, .steps = 1};
    if (n <= SHORT)
        return 0;
    t->region = regions_find(s->regions, op->vector.data, n * size);
    t->way = t->region ? MAPPED : SLICES;
    if (t->region)
        return 0;
    size_t longest = group_chunk(n, g->job.grain, g->size, 0).n;
    t->most = COUNTERS_PLACE / size / (size_t)g->size;
    t->steps = (longest + t->most - 1) / t->most;
    return 0;
}

static int shm_advance(struct group *g, uint64_t *done)
{
    struct shm *s = g->state;
    for (bool moved = true; moved;) {
        moved = false;
        while (s->ready.op < s->posted && may_show(g))
            step_show(g);
        for (; s->summed.step < s->ready.step && may_sum(g); moved = true)
            step_sum(g);
        for (; s->done.step < s->summed.step && may_end(g); moved = true)
            step_end(g);
    }
    *done = s->done.op;
    return 0;
}

// What the steps wait for that are not complete, the first of them first.
static int awaited(const struct group *g, struct awaited a[2])
{
    const struct shm *s = g->state;
    int n = 0;
    if (s->done.step < s->summed.step)
        a[n++] = (struct awaited){SUMMED, s->done.step + 1, -1};
    if (s->summed.step < s->ready.step) {
        const struct group_op *op = &task_of(g, &s->summed)->op;
        int whom = op->verb == GROUP_BROADCAST ? op->peer : -1;
        a[n++] = (struct awaited){READY, s->summed.step + 1, whom};
    }
    if (n == 0)
        a[n++] = (struct awaited){READY, s->placed, -1};
    return n;
}

static int shm_wait(struct group *g, uint64_t spin_ns)
{
    struct shm *s = g->state;
    struct awaited a[2];
    int n = awaited(g, a);
    return counters_wait(&s->counters, spin_ns, a, n);
}

static void shm_abort(struct group *g)
{
    struct shm *s = g->state;
    counters_abort(&s->counters);
}

static void shm_close(struct group *g)
{
    struct shm *s = g->state;
    counters_close(&s->counters);
    regions_close(&s->regions);
    mem_free(s->tasks);
}

const struct group_ops ring_shm = {
    .name = "shm",
    .state_size = sizeof(struct shm),
    .is_supported = shm_is_supported,
    .open = shm_open,
    .share = shm_share,
    .begin = shm_begin,
    .advance = shm_advance,
    .wait = shm_wait,
    .abort = shm_abort,
    .close = shm_close,
};
