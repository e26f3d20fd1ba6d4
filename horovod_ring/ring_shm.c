// ring_shm.c - does the verbs of group.h on one host. There is no ring.
//
// Shared memory does better than a ring of messages: every member reads its own
// chunk in all members' vectors, in place, and writes the sum into all of them,
// in one pass.
//
//     member          0    1    2        0    1    2
//     vectors       a0   a1   a2       A    A    A
//                   b0   b1   b2  ->   B    B    B
//                   c0   c1   c2       C    C    C
//                   READY              SUMMED
//
//     time     2 updates of a counter (counters.h) + bytes moved / bandwidth
//     payload  2(world-1)/world S out of and into each member, as in the ring
//
// The picture shows all_reduce; the other verbs do parts of it. reduce_scatter
// writes a sum into the member's own vector only, reduce into the root's.
// all_gather copies the others' chunks, and broadcast copies the root's vector.
// If vectors can be mapped, a verb takes one step (shm_steps.h). A vector of at
// most 2048 elements is copied into a place that all others read. Then every
// member computes the whole sum for itself, which saves the second update of a
// counter.
//
// Additions are in the ring's order: the sum of chunk c begins with member
// c+1's and ends with member c's, and a reduce begins with the member right of
// the root and ends with the root. With a 16-bit wire each sum of two is
// rounded, as in the ring. So the bits are those of ring_tcp. A 16-bit wire
// saves no bytes here: memory is read and written in the vector's type, and
// bytes are counted in that type (ring_shm_elements()).
//
// There is no thread: data move while a verb is posted and in group_await(). A
// group whose verbs are mostly messages has one, since they are copied through
// buffers that may be shorter than a message (streams_shm.c).

#include "horovod_ring/carriers.h"

#include "horovod_ring/pairs.h"
#include "horovod_ring/shm_steps.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "telemetry/span.h"

struct shm {
    struct members members;
    struct counters counters;
    struct region *regions;
    struct task *tasks; // verb k at k % depth
    uint64_t posted;
    struct cursor ready, summed, done;
    uint64_t placed;            // 1 + the newest step that uses a place
    uint64_t known[COUNTERS];   // all members' counters have at least this
    struct group_stats counted; // without the pairs
    struct pairs pairs;         // and the order of all verbs
    struct span_lane *lane;
};

// ---- steps

static struct task *task_of(const struct group *g, const struct cursor *c)
{
    const struct shm *s = g->state;
    return &s->tasks[c->op % g->job.depth];
}

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

// A place is written again two steps later. A member is READY for a step that
// uses a place only after it has done its part in the step before. So once all
// members were READY for the step before, no member still reads the place of
// the step before that one.
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
    return !steps_await_others(task_of(g, &s->done)) ||
           all_have(s, SUMMED, s->done.step + 1);
}

static void step_show(struct group *g)
{
    struct shm *s = g->state;
    const struct task *t = task_of(g, &s->ready);
    steps_show(t, &s->ready);
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
    steps_work(t, &s->summed);
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
    steps_take_back(t, &s->done);
    pass_step(g, &s->done);
    if (s->done.op == op)
        return;
    size_t grain = g->job.grain;
    group_count(&s->counted, t->op.verb,
                ring_shm_elements(&t->op, grain, g->rank, g->size, OUT) * size,
                ring_shm_elements(&t->op, grain, g->rank, g->size, IN) * size);
}

// ---- the carrier

static int shm_open(struct group *g)
{
    struct shm *s = g->state;
    const struct group_job *job = &g->job;
    g->job.thread = job->thread && job->messages;
    s->lane = spans_lane(job->spans, g->name);
    s->members = (struct members){.rank = g->rank,
                                  .size = g->size,
                                  .grain = job->grain,
                                  .counters = &s->counters};
    s->tasks = mem_alloc(job->depth, sizeof *s->tasks);
    if (!s->tasks || counters_open(&s->counters, job->cluster, g->name))
        return -1;
    return pairs_open(&s->pairs, &streams_shm, g);
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
    if (!pairs_post(&s->pairs, op))
        steps_plan(&s->tasks[s->posted++ % g->job.depth], &s->members, op,
                   s->regions);
    return 0;
}

static void take_steps(struct group *g)
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
}

static int shm_advance(struct group *g, uint64_t *done)
{
    struct shm *s = g->state;
    const struct pairs *p = &s->pairs;
    uint64_t moves = p->moves;
    take_steps(g);
    int rc = pairs_advance(&s->pairs, s->done.op, done);
    if (p->moves > moves)
        counters_set(&s->counters, MOVED, p->moves);
    g->moved = s->counted;
    group_stats_add(&g->moved, &p->counted);
    return rc;
}

// The counters for which this member waits. Those of its earliest incomplete
// step come first.
struct awaited_steps {
    const struct group *g;
    struct awaited a[2];
    int n;
};

static struct awaited_steps awaited_of(const struct group *g)
{
    const struct shm *s = g->state;
    struct awaited_steps h = {.g = g};
    if (s->done.step < s->summed.step)
        h.a[h.n++] = (struct awaited){SUMMED, s->done.step + 1, -1};
    if (s->summed.step < s->ready.step) {
        const struct group_op *op = &task_of(g, &s->summed)->op;
        int whom = op->verb == GROUP_BROADCAST ? op->peer : -1;
        h.a[h.n++] = (struct awaited){READY, s->summed.step + 1, whom};
    }
    if (h.n == 0 && s->ready.op < s->posted)
        h.a[h.n++] = (struct awaited){READY, s->placed, -1};
    return h;
}

static bool has_come(const void *arg)
{
    const struct awaited_steps *h = arg;
    const struct shm *s = h->g->state;
    for (int i = 0; i < h->n; i++)
        if (counters_has_come(&s->counters, &h->a[i]))
            return true;
    const struct pairs *p = &s->pairs;
    return p->pending > 0 && streams_shm_can_move(&p->streams);
}

static int shm_wait(struct group *g)
{
    struct shm *s = g->state;
    struct awaited_steps h = awaited_of(g);
    enum group_verb verb;
    int whom = pairs_awaited(&s->pairs, &verb);
    struct awaited first = h.a[0];
    if (s->pairs.pending > 0)
        pairs_want(&s->pairs);
    if (whom >= 0)
        first = (struct awaited){.k = MOVED, .rank = whom};
    return counters_wait(&s->counters, g->since_ns, g->spin_ns, &first,
                         has_come, &h);
}

static void shm_wake(struct group *g)
{
    struct shm *s = g->state;
    counters_wake(&s->counters);
}

static void shm_abort(struct group *g)
{
    struct shm *s = g->state;
    if (s->counters.culprit < 0)
        s->counters.culprit = s->pairs.streams.culprit;
    counters_abort(&s->counters);
}

static void shm_close(struct group *g)
{
    struct shm *s = g->state;
    counters_close(&s->counters);
    regions_close(&s->regions);
    pairs_close(&s->pairs);
    mem_free(s->tasks);
}

const struct group_ops ring_shm = {
    .name = "shm",
    .threaded = true,
    .state_size = sizeof(struct shm),
    .is_supported = counters_possible,
    .open = shm_open,
    .share = shm_share,
    .begin = shm_begin,
    .advance = shm_advance,
    .wait = shm_wait,
    .wake = shm_wake,
    .abort = shm_abort,
    .close = shm_close,
};

const struct group_ops *ring_choose(const struct group_job *job, bool tcp)
{
    char why[128];
    int can = tcp ? 0 : group_is_supported(&ring_shm, job, why);
    return can < 0 ? NULL : can ? &ring_shm : &ring_tcp;
}
