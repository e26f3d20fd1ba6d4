// plan.c - the ring's timetable: which part of a vector travels when.

#include "horovod_ring/plan.h"

bool plan_is_chain(const struct group_op *op)
{
    return op->verb == GROUP_BROADCAST || op->verb == GROUP_REDUCE;
}

// How many hops this worker is from the root, counted to the right.
static int hops(const struct plan *p, const struct group_op *op)
{
    return (p->rank - op->peer + p->world) % p->world;
}

int plan_messages(const struct plan *p, const struct group_op *op,
                  enum direction d)
{
    int h = hops(p, op), last = p->world - 1;
    if (op->verb == GROUP_BROADCAST)
        return d == IN ? h > 0 : h < last;
    if (op->verb == GROUP_REDUCE)
        return d == IN ? h != 1 : h > 0;
    return op->verb == GROUP_ALL_REDUCE ? 2 * last : last;
}

struct group_chunk plan_span(const struct plan *p, const struct group_op *op,
                             enum direction d, int message)
{
    size_t n = op->vector.n;
    if (plan_is_chain(op))
        return (struct group_chunk){0, n};
    // All_gather begins with the chunk that comes last in reduce_scatter.
    int back = message + (op->verb == GROUP_ALL_GATHER ? p->world - 1 : 0) +
               (d == OUT ? 1 : 2);
    int c = (p->rank - back + 3 * p->world) % p->world;
    return group_chunk_of(&op->vector, p->grain, p->world, c);
}

int plan_lag(const struct plan *p, const struct group_op *op)
{
    int first = op->verb == GROUP_REDUCE ? 1 : 0; // hops of the chain's start
    return plan_is_chain(op) && hops(p, op) != first ? 0 : 1;
}

bool plan_is_own(const struct plan *p, const struct group_op *op, int message)
{
    return message < plan_lag(p, op);
}

bool plan_adds(const struct plan *p, const struct group_op *op, int message)
{
    return op->verb == GROUP_REDUCE || op->verb == GROUP_REDUCE_SCATTER ||
           (op->verb == GROUP_ALL_REDUCE && message < p->world - 1);
}

bool plan_completes(const struct plan *p, const struct group_op *op,
                    int message)
{
    if (op->verb == GROUP_REDUCE)
        return p->rank == op->peer;
    return !plan_adds(p, op, message) || message == p->world - 2;
}

static size_t chunk_len(const struct plan *p, const struct group_op *op, int c)
{
    c = (c + p->world) % p->world;
    return group_chunk_of(&op->vector, p->grain, p->world, c).n;
}

size_t plan_elements(const struct plan *p, const struct group_op *op,
                     enum direction d)
{
    size_t n = op->vector.n;
    int r = p->rank;
    if (p->world == 1)
        return 0;
    if (group_is_pair(op->verb))
        return (d == OUT) == (op->verb == GROUP_SEND) ? n : 0;
    if (op->verb == GROUP_ALL_TO_ALL)
        return group_exchanged(op, p->grain, r, p->world, d == OUT);
    if (plan_is_chain(op))
        return plan_messages(p, op, d) ? n : 0;
    size_t first = n - chunk_len(p, op, d == OUT ? r : r - 1);
    size_t second = n - chunk_len(p, op, d == OUT ? r + 1 : r);
    return (op->verb == GROUP_ALL_GATHER ? 0 : first) +
           (op->verb == GROUP_REDUCE_SCATTER ? 0 : second);
}
