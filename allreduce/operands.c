// operands.c - the elements that a member gives to a library's verb, and those
// that it gets back.

#include "allreduce/operands.h"

static struct group_chunk own_chunk(const struct group *g,
                                    const struct group_op *op)
{
    return group_chunk_of(&op->vector, g->job.grain, g->size, g->rank);
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
        return own_chunk(g, op);
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
        return own_chunk(g, op);
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
    size_t size = dtype_bytes(op->vector.wire), grain = g->job.grain;
    size_t given = operand_given(g, op).n, taken = operand_taken(g, op).n;
    if (op->verb == GROUP_ALL_TO_ALL) {
        given = group_exchanged(op, grain, g->rank, g->size, true);
        taken = group_exchanged(op, grain, g->rank, g->size, false);
    }
    group_count(&g->moved, op->verb, given * size, taken * size);
}
