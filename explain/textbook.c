// textbook.c - runs one collective by a textbook's algorithm on a virtual
// cluster.
//
//     linear, tree, chain   the schedules of textbook/schedule.h. An all-reduce
//                           is a reduce to worker 0, then a broadcast from it
//     doubling              in round k workers r and r xor 2^k exchange the
//                           sums that they have so far: log2 w rounds of n
//                           elements
//     halving               in each round two workers divide their range: each
//                           sends one half, and adds the partner's numbers to
//                           the other half. The farthest partner comes first.
//                           After the last round each has the sum of n/w
//                           elements. Then the same rounds in reverse order
//                           gather the sums.
//
// Thakur, Rabenseifner and Gropp, "Optimization of Collective Communication
// Operations in MPICH", 2005. Doubling and halving need 2^k workers.

#include "explain/ways.h"

#include "base/base.h"
#include "config/value.h"
#include "device/vector.h"
#include "group/group.h"
#include "textbook/schedule.h"

#include <string.h>

const char *const way_algorithms[] = {"own",     "linear",   "tree", "chain",
                                      "halving", "doubling", NULL};

struct job {
    struct story *story;
    enum way_algorithm algorithm;
    struct schedule schedules[2]; // made one after the other; of pairs: none
    int nschedules;
};

// ---- by a schedule

static int move(struct virtual_rank *r, const struct move *m, float *own,
                float *landing, struct virtual_req *req)
{
    size_t bytes = m->span.n * sizeof(float);
    return m->sends ? virtual_isend(r, m->peer, own + m->span.off, bytes, req)
                    : virtual_irecv(r, m->peer,
                                    (m->adds ? landing : own) + m->span.off,
                                    bytes, req);
}

static int moves(struct virtual_rank *r, const struct schedule *s, float *own,
                 float *landing)
{
    struct move m[2];
    struct virtual_req req[2];
    for (int k = 0, n; (n = schedule_next(s, virtual_id(r), k, m)) > 0;
         k += n) {
        for (int i = 0; i < n; i++)
            if (move(r, &m[i], own, landing, &req[i]))
                return -1;
        if (virtual_wait(r, req, n))
            return -1;
        if (m[0].adds)
            vector_add(own + m[0].span.off, landing + m[0].span.off, DTYPE_F32,
                       m[0].span.n);
    }
    return 0;
}

// Adds a schedule's bytes of every rank to the law.
static void add_law(struct story *s, const struct schedule *schedule)
{
    struct move m;
    for (int r = 0; r < s->workers; r++)
        for (int i = 0; schedule_move(schedule, r, i, &m); i++)
            if (m.sends) {
                s->law[OUT][r] += m.span.n * sizeof(float);
                s->law[IN][m.peer] += m.span.n * sizeof(float);
            }
}

// ---- by pairs

// Sends n elements at `from` and receives n elements into `to`, at once.
static int swap(struct virtual_rank *r, int partner, const float *from,
                float *to, size_t n)
{
    struct virtual_req q[2];
    return virtual_isend(r, partner, from, n * sizeof *from, &q[0]) ||
                   virtual_irecv(r, partner, to, n * sizeof *to, &q[1]) ||
                   virtual_wait(r, q, 2)
               ? -1
               : 0;
}

static int doubling(struct virtual_rank *r, const struct story *s, float *v,
                    float *landing)
{
    size_t n = s->vectors[0].n;
    for (int step = 1; step < s->workers; step *= 2) {
        if (swap(r, virtual_id(r) ^ step, v, landing, n))
            return -1;
        vector_add(v, landing, DTYPE_F32, n);
    }
    return 0;
}

// The bits of a rank, beginning with the highest, say which half it keeps.
static int halving(struct virtual_rank *r, const struct story *s, float *v,
                   float *landing)
{
    size_t off = 0, n = s->vectors[0].n;
    int me = virtual_id(r), w = s->workers;
    for (int step = w / 2; step > 0; step /= 2) {
        n /= 2;
        size_t keep = off + (me & step ? n : 0),
               give = off + (me & step ? 0 : n);
        if (swap(r, me ^ step, v + give, landing + keep, n))
            return -1;
        vector_add(v + keep, landing + keep, DTYPE_F32, n);
        off = keep;
    }
    for (int step = 1; step < w; step *= 2) {
        size_t other = me & step ? off - n : off + n;
        if (swap(r, me ^ step, v + off, v + other, n))
            return -1;
        off = off < other ? off : other;
        n *= 2;
    }
    return 0;
}

// ---- the story

static struct group_chunk owned(const struct job *j, int rank)
{
    size_t n = j->story->vectors[0].n;
    enum schedule_op op = j->nschedules ? j->schedules[0].op : SCHEDULE_REDUCE;
    if (op == SCHEDULE_GATHER)
        return group_chunk(n, 1, j->story->workers, rank);
    return (struct group_chunk){0, op == SCHEDULE_REDUCE || rank == 0 ? n : 0};
}

static int run(struct virtual_rank *r, void *arg)
{
    const struct job *j = arg;
    struct story *s = j->story;
    size_t n = s->vectors[0].n;
    int rank = virtual_id(r);
    struct group_chunk own = owned(j, rank);
    float *v = mem_alloc(2 * n, sizeof *v);
    for (size_t i = 0; v && i < own.n; i++)
        v[own.off + i] = way_number(rank);
    int rc = v ? story_before(s, 0, rank, v) : -1;
    for (int k = 0; !rc && k < j->nschedules; k++)
        rc = moves(r, &j->schedules[k], v, v + n);
    if (!rc && !j->nschedules)
        rc = (j->algorithm == WAY_HALVING ? halving : doubling)(r, s, v, v + n);
    if (!rc)
        rc = story_after(s, 0, rank, v);
    mem_free(v);
    return rc;
}

static void set_law(struct story *s, const struct job *j)
{
    double bytes = (double)s->vectors[0].n * sizeof(float);
    struct law law = {0};
    for (int k = 0; k < j->nschedules; k++) {
        const struct law one = schedule_law(&j->schedules[k]);
        law = (struct law){law.hops + one.hops, law.share + one.share};
        add_law(s, &j->schedules[k]);
    }
    if (!j->nschedules)
        law = law_allreduce(j->algorithm == WAY_HALVING ? ALGORITHM_HALVING
                                                        : ALGORITHM_DOUBLING,
                            s->workers);
    for (int r = 0; r < s->workers && !j->nschedules; r++)
        s->law[IN][r] = s->law[OUT][r] = (uint64_t)(law.share * bytes + .5);
    s->law_s = law_seconds(&law, &s->link, bytes);
}

// ---- the question

static void add_schedule(struct job *j, enum schedule_op op, size_t piece)
{
    j->schedules[j->nschedules++] =
        (struct schedule){.op = op,
                          .algorithm = (enum schedule_algorithm)(j->algorithm -
                                                                 WAY_LINEAR),
                          .world = j->story->workers,
                          .n = j->story->vectors[0].n,
                          .piece = piece};
}

static int all_reduce(struct job *j, size_t piece)
{
    struct story *s = j->story;
    int w = s->workers;
    bool pairs = j->algorithm >= WAY_HALVING;
    if (pairs && (w & (w - 1)))
        return fail("explain: algorithm=%s does not work with %d workers; try: "
                    "2, 4, 8 or 16",
                    way_algorithms[j->algorithm], w);
    if (j->algorithm == WAY_HALVING && s->vectors[0].n % (size_t)w)
        return fail("explain: algorithm=halving cannot divide %zu elements "
                    "into %d equal parts; try: n=%d",
                    s->vectors[0].n, w, 4 * w);
    if (!pairs) {
        add_schedule(j, SCHEDULE_REDUCE, piece);
        add_schedule(j, SCHEDULE_BROADCAST, piece);
    }
    return text_into(
        s->note, sizeof s->note, "An all-reduce by a textbook's algorithm: %s.",
        j->algorithm == WAY_HALVING
            ? "pairs of workers exchange and add halves, then halves of "
              "halves; then the sums are gathered in the same way"
        : pairs ? "pairs of workers exchange and add the sums that they have "
                  "so far, each time with a partner farther away"
                : "a reduce to worker 0, then a broadcast from it");
}

static int collective(struct job *j, const char *name, size_t piece)
{
    for (int op = 0; op < SCHEDULE_OPS && j->algorithm < WAY_HALVING; op++)
        if (!strcmp(schedule_op_names[op], name))
            add_schedule(j, (enum schedule_op)op, piece);
    const struct schedule *s = j->schedules;
    if (!j->nschedules || !schedule_exists(s->op, s->algorithm))
        return fail("explain %.60s: there is no algorithm=%s; try: "
                    "algorithm=%s",
                    name, way_algorithms[j->algorithm],
                    value_known(name, schedule_op_names) ? "linear, or tree"
                                                         : "own");
    return text_into(j->story->note, sizeof j->story->note,
                     "%s by a textbook's algorithm, %s, in %d rounds. The root "
                     "is worker 0.",
                     name, schedule_algorithm_names[s->algorithm],
                     schedule_rounds(s));
}

int way_textbook(struct story *s, const char *name,
                 enum way_algorithm algorithm, size_t piece)
{
    struct job job = {.story = s, .algorithm = algorithm};
    bool reduces = !strcmp(name, group_verb_name(GROUP_ALL_REDUCE));
    if (s->vectors[0].n < (size_t)s->workers)
        return fail("explain: n=%zu elements are too few for %d workers; try: "
                    "at least one for each",
                    s->vectors[0].n, s->workers);
    s->vectors[0].name = "vector";
    s->nvectors = 1;
    if ((reduces ? all_reduce(&job, piece) : collective(&job, name, piece)) ||
        story_run(s, 0, run, &job))
        return -1;
    set_law(s, &job);
    return 0;
}
