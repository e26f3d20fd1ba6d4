// allreduce.c - runs an all-reduce by a textbook's algorithm on a virtual
// cluster.
//
//     linear, tree, chain   a reduce to worker 0, then a broadcast from it
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
#include "device/vector.h"

struct job {
    struct story *story;
    enum way_allreduce algorithm;
    size_t piece;
};

static const char *const names[] = {"linear", "tree", "chain", "halving",
                                    "doubling"};

// ---- by a reduce and a broadcast

static struct schedule schedule_of(const struct job *j, enum schedule_op op)
{
    return (struct schedule){.op = op,
                             .algorithm = (enum schedule_algorithm)j->algorithm,
                             .world = j->story->workers,
                             .n = j->story->vectors[0].n,
                             .piece = j->piece};
}

static int reduce_and_broadcast(struct virtual_rank *r, const struct job *j,
                                float *v, float *landing)
{
    const struct schedule up = schedule_of(j, SCHEDULE_REDUCE);
    const struct schedule down = schedule_of(j, SCHEDULE_BROADCAST);
    return way_moves(r, &up, v, landing) || way_moves(r, &down, v, landing) ? -1
                                                                            : 0;
}

// ---- by pairs

// Sends `out` elements at `from` and receives `in` elements into `to`, at once.
static int swap(struct virtual_rank *r, int partner, const float *from,
                float *to, size_t out, size_t in)
{
    struct virtual_req q[2];
    return virtual_isend(r, partner, from, out * sizeof *from, &q[0]) ||
                   virtual_irecv(r, partner, to, in * sizeof *to, &q[1]) ||
                   virtual_wait(r, q, 2)
               ? -1
               : 0;
}

static int doubling(struct virtual_rank *r, const struct job *j, float *v,
                    float *landing)
{
    size_t n = j->story->vectors[0].n;
    for (int step = 1; step < j->story->workers; step *= 2) {
        if (swap(r, virtual_id(r) ^ step, v, landing, n, n))
            return -1;
        vector_add(v, landing, DTYPE_F32, n);
    }
    return 0;
}

// The bits of a rank, beginning with the highest, say which half it keeps.
static int halving(struct virtual_rank *r, const struct job *j, float *v,
                   float *landing)
{
    size_t off = 0, n = j->story->vectors[0].n;
    int me = virtual_id(r), w = j->story->workers;
    for (int step = w / 2; step > 0; step /= 2) {
        n /= 2;
        size_t keep = off + (me & step ? n : 0),
               give = off + (me & step ? 0 : n);
        if (swap(r, me ^ step, v + give, landing + keep, n, n))
            return -1;
        vector_add(v + keep, landing + keep, DTYPE_F32, n);
        off = keep;
    }
    for (int step = 1; step < w; step *= 2) {
        size_t other = me & step ? off - n : off + n;
        if (swap(r, me ^ step, v + off, v + other, n, n))
            return -1;
        off = off < other ? off : other;
        n *= 2;
    }
    return 0;
}

// ---- the story

static int run(struct virtual_rank *r, void *arg)
{
    const struct job *j = arg;
    struct story *s = j->story;
    size_t n = s->vectors[0].n;
    int rank = virtual_id(r), rc = -1;
    float *v = mem_alloc(2 * n, sizeof *v);
    for (size_t i = 0; v && i < n; i++)
        v[i] = way_number(rank);
    if (v && !story_before(s, 0, rank, v))
        rc = (j->algorithm == WAY_HALVING ? halving
              : j->algorithm == WAY_DOUBLING
                  ? doubling
                  : reduce_and_broadcast)(r, j, v, v + n);
    if (!rc)
        rc = story_after(s, 0, rank, v);
    mem_free(v);
    return rc;
}

static void set_law(struct story *s, const struct job *j)
{
    double bytes = (double)s->vectors[0].n * sizeof(float);
    struct law law =
        law_allreduce(j->algorithm == WAY_HALVING ? ALGORITHM_HALVING
                                                  : ALGORITHM_DOUBLING,
                      s->workers);
    if (j->algorithm < WAY_HALVING) {
        const struct schedule up = schedule_of(j, SCHEDULE_REDUCE);
        const struct schedule down = schedule_of(j, SCHEDULE_BROADCAST);
        const struct law a = schedule_law(&up), b = schedule_law(&down);
        law = (struct law){a.hops + b.hops, a.share + b.share};
        way_moves_law(s, &up);
        way_moves_law(s, &down);
    }
    for (int r = 0; r < s->workers && j->algorithm >= WAY_HALVING; r++)
        s->law[IN][r] = s->law[OUT][r] = (uint64_t)(law.share * bytes + .5);
    s->law_s = law_seconds(&law, &s->link, bytes);
}

int way_allreduce(struct story *s, enum way_allreduce algorithm, size_t piece)
{
    struct job job = {s, algorithm, piece};
    int w = s->workers;
    if (algorithm >= WAY_HALVING && (w & (w - 1)))
        return fail("explain: algorithm=%s does not work with %d workers; try: "
                    "2, 4, 8 or 16",
                    names[algorithm], w);
    if (algorithm == WAY_HALVING && s->vectors[0].n % (size_t)w)
        return fail("explain: algorithm=halving cannot divide %zu elements "
                    "into %d equal parts; try: n=%d",
                    s->vectors[0].n, w, 4 * w);
    s->vectors[0].name = "vector";
    s->nvectors = 1;
    text_into(s->note, sizeof s->note,
              "An all-reduce by a textbook's algorithm: "
              "%s.",
              algorithm == WAY_HALVING
                  ? "pairs of workers exchange and add halves, then halves of "
                    "halves; then the sums are gathered in the same way"
              : algorithm == WAY_DOUBLING
                  ? "pairs of workers exchange and add the sums that they "
                    "have so far, each time with a partner farther away"
                  : "a reduce to worker 0, then a broadcast from it");
    if (story_run(s, 0, run, &job))
        return -1;
    set_law(s, &job);
    return 0;
}
