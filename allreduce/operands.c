// operands.c - the elements that a member gives to a library's verb, and those
// that it gets back.

#include "allreduce/operands.h"

static struct group_chunk own_chunk(const struct group *g, size_t n)
{
    return group_chunk(n, g->job.grain, g->size, g->rank);
}

static struct group_chunk all_or_none(const struct group_op *op, bool all)
{
    return (struct group_chunk){.n = all ? op->vector.n : 0};
}

struct group_chunk operand_given(const struct group *g,
                                 const struct group_op *op)
{
    switch (op->verb) {
    case GROUP_ALL_GATHER:
        return own_chunk(g, op->vector.n);
    case GROUP_BROADCAST:
        return all_or_none(op, g->rank == op->peer);
    default:
        return all_or_none(op, op->verb != GROUP_RECV);
    }
}

struct group_chunk operand_taken(const struct group *g,
                                 const struct group_op *op)
{
    switch (op->verb) {
    case GROUP_REDUCE_SCATTER:
        return own_chunk(g, op->vector.n);
    case GROUP_BROADCAST:
        return all_or_none(op, g->rank != op->peer);
    case GROUP_REDUCE:
        return all_or_none(op, g->rank == op->peer);
    default:
        return all_or_none(op, op->verb != GROUP_SEND);
    }
}

void operands_count(struct group *g, const struct group_op *op)
{
    size_t size = dtype_bytes(op->vector.wire);
    group_count(&g->moved, op->verb, operand_given(g, op).n * size,
                operand_taken(g, op).n * size);
}
