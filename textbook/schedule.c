// schedule.c - formulas for each move: its round, its two members and its
// elements.
//
// The formulas are for moves from the root. A reduce and a gather have the same
// moves backwards in time.

#include "textbook/schedule.h"

#include "base/base.h"

const char *const schedule_op_names[] = {"broadcast", "reduce", "scatter",
                                         "gather", NULL};
const char *const schedule_algorithm_names[] = {"linear", "tree", "chain",
                                                NULL};

static bool is_up(const struct schedule *s)
{
    return s->op == SCHEDULE_REDUCE || s->op == SCHEDULE_GATHER;
}

static bool is_whole(const struct schedule *s)
{
    return s->op == SCHEDULE_BROADCAST || s->op == SCHEDULE_REDUCE;
}

// The elements that members [first, last) need, all together.
static struct group_chunk span_of(const struct schedule *s, int first, int last)
{
    if (is_whole(s))
        return (struct group_chunk){.n = s->n};
    struct group_chunk a = group_chunk(s->n, 1, s->world, first);
    struct group_chunk b = group_chunk(s->n, 1, s->world, last - 1);
    return (struct group_chunk){.off = a.off, .n = b.off + b.n - a.off};
}

// ---- linear

static int linear_count(const struct schedule *s, int rank)
{
    return rank == 0 ? s->world - 1 : 1;
}

static struct move linear_move(const struct schedule *s, int rank, int k)
{
    int other = rank == 0 ? k + 1 : rank;
    return (struct move){.round = other - 1,
                         .peer = rank == 0 ? other : 0,
                         .sends = rank == 0,
                         .span = span_of(s, other, other + 1)};
}

// ---- tree: m is the lowest bit of r that is 1. Member r receives from r - m,
// and sends to members between r and r + m

static int tree_rounds(const struct schedule *s)
{
    int rounds = 0;
    while (1 << rounds < s->world)
        rounds++;
    return rounds;
}

// log2 of m. For the root it is the number of rounds.
static int tree_height(const struct schedule *s, int rank)
{
    int height = 0;
    if (rank == 0)
        return tree_rounds(s);
    while (!(rank >> height & 1))
        height++;
    return height;
}

// The number of members that r sends to: those of r+1, r+2, r+4, .. that are
// below r + m and exist.
static int tree_children(const struct schedule *s, int rank)
{
    int n = 0, height = tree_height(s, rank);
    while (n < height && rank + (1 << n) < s->world)
        n++;
    return n;
}

// The message to `child`, as the child or its parent (`sends`) sees it. The
// child's height gives the round.
static struct move tree_edge(const struct schedule *s, int child, bool sends)
{
    int height = tree_height(s, child), last = child + (1 << height);
    return (struct move){.round = tree_rounds(s) - 1 - height,
                         .peer = sends ? child : child & (child - 1),
                         .sends = sends,
                         .span = span_of(s, child,
                                         last < s->world ? last : s->world)};
}

static int tree_count(const struct schedule *s, int rank)
{
    return (rank > 0) + tree_children(s, rank);
}

static struct move tree_move(const struct schedule *s, int rank, int k)
{
    if (rank > 0 && k == 0)
        return tree_edge(s, rank, false);
    int after = tree_count(s, rank) - 1 - k; // the farthest child is first
    return tree_edge(s, rank + (1 << after), true);
}

// ---- chain: member r sends piece j in round r + j

static int chain_pieces(const struct schedule *s)
{
    CHECK(s->piece > 0);
    return (int)((s->n + s->piece - 1) / s->piece);
}

static int chain_count(const struct schedule *s, int rank)
{
    return ((rank > 0) + (rank < s->world - 1)) * chain_pieces(s);
}

static struct move chain_piece(const struct schedule *s, int rank, int j,
                               bool sends)
{
    size_t off = (size_t)j * s->piece, left = s->n - off;
    return (struct move){.round = sends ? rank + j : rank - 1 + j,
                         .peer = sends ? rank + 1 : rank - 1,
                         .sends = sends,
                         .span = {off, left < s->piece ? left : s->piece}};
}

// The moves of a member in the middle. First piece 0 comes in. Then in each
// round the next piece comes in and the one before it goes out. At the end the
// last piece goes out.
static struct move chain_move(const struct schedule *s, int rank, int k)
{
    int last = 2 * chain_pieces(s) - 1;
    if (rank == 0 || rank == s->world - 1)
        return chain_piece(s, rank, k, rank == 0);
    bool sends = k == last || (k > 0 && k % 2 == 0);
    int piece = k == last ? k / 2 : sends ? k / 2 - 1 : (k + 1) / 2;
    return chain_piece(s, rank, piece, sends);
}

// ---- all three algorithms

static int count(const struct schedule *s, int rank)
{
    return s->algorithm == SCHEDULE_LINEAR ? linear_count(s, rank)
           : s->algorithm == SCHEDULE_TREE ? tree_count(s, rank)
                                           : chain_count(s, rank);
}

bool schedule_exists(enum schedule_op op, enum schedule_algorithm a)
{
    return a != SCHEDULE_CHAIN ||
           is_whole(&(struct schedule){.op = op, .algorithm = a});
}

int schedule_rounds(const struct schedule *s)
{
    return s->algorithm == SCHEDULE_LINEAR ? s->world - 1
           : s->algorithm == SCHEDULE_TREE ? tree_rounds(s)
                                           : s->world - 2 + chain_pieces(s);
}

bool schedule_move(const struct schedule *s, int rank, int k, struct move *out)
{
    int n = count(s, rank), down = is_up(s) ? n - 1 - k : k;
    CHECK(schedule_exists(s->op, s->algorithm) && s->world > 1 &&
          s->n >= (size_t)s->world);
    if (k >= n)
        return false;
    *out = s->algorithm == SCHEDULE_LINEAR ? linear_move(s, rank, down)
           : s->algorithm == SCHEDULE_TREE ? tree_move(s, rank, down)
                                           : chain_move(s, rank, down);
    if (is_up(s)) {
        out->round = schedule_rounds(s) - 1 - out->round;
        out->sends = !out->sends;
        out->adds = s->op == SCHEDULE_REDUCE && !out->sends;
    }
    return true;
}

int schedule_next(const struct schedule *s, int rank, int k, struct move out[2])
{
    if (!schedule_move(s, rank, k, &out[0]))
        return 0;
    return schedule_move(s, rank, k + 1, &out[1]) &&
                   out[1].round == out[0].round
               ? 2
               : 1;
}

struct group_chunk schedule_result(const struct schedule *s, int rank)
{
    if (s->op == SCHEDULE_SCATTER)
        return span_of(s, rank, rank + 1);
    bool all = s->op == SCHEDULE_BROADCAST || rank == 0;
    return (struct group_chunk){.n = all ? s->n : 0};
}

size_t schedule_sends(const struct schedule *s, int rank)
{
    struct move m;
    size_t n = 0;
    for (int k = 0; schedule_move(s, rank, k, &m); k++)
        n += m.sends ? m.span.n : 0;
    return n;
}

struct law schedule_law(const struct schedule *s)
{
    struct law law = {.hops = schedule_rounds(s)};
    double n = (double)s->n;
    if (s->algorithm == SCHEDULE_CHAIN) {
        double piece = n < (double)s->piece ? n : (double)s->piece;
        law.share = ((s->world - 2) * piece + n) / n;
    } else if (is_whole(s)) {
        law.share = law.hops;
    } else {
        law.share = (n - (double)group_chunk(s->n, 1, s->world, 0).n) / n;
    }
    return law;
}
