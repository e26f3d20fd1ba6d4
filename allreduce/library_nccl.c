// library_nccl.c - does the verbs of group.h with NCCL's collectives. They run
// while backward computes.
//
//     compute  ... backward of bucket 0 *--- backward of bucket 1 *---
//     comm                              *--- sum bucket 0 ---  *- sum bucket 1
//
// A verb makes the communication queue wait for the work that is already queued
// on the compute queue, and queues its collective; no thread waits. If fp32
// numbers travel in 16 bits, the casts are queued there too. The 16-bit numbers
// are in one vector, which the verbs use in turn.
//
// NCCL scatters and gathers only chunks of equal length. If the lengths differ,
// each chunk takes a collective of its own; all of these are in one launch.

#include "allreduce/library_carriers.h"

#include "allreduce/operands.h"

#include "base/base.h"
#include "group/nccl.h"

struct library {
    struct nccl nccl; // must be first
    void *half;       // job.largest elements of two bytes
};

static void *at(void *data, enum dtype type, size_t off)
{
    return (char *)data + off * dtype_bytes(type);
}

static struct group_chunk chunk_of(const struct group *g,
                                   const struct group_op *op, int c)
{
    return group_chunk_of(&op->vector, g->job.grain, g->size, c);
}

static bool has_equal_chunks(const struct group *g, const struct group_op *op)
{
    size_t longest = group_longest(&op->vector, g->job.grain, g->size);
    return longest * (size_t)g->size == op->vector.n;
}

// One collective for each chunk c: the sum goes to member c, or member c's
// numbers go to all.
static int move_each(struct group *g, const struct group_op *op, void *data)
{
    const struct nccl *n = g->state;
    enum dtype wire = op->vector.wire;
    ncclDataType_t type = nccl_type(wire);
    ncclResult_t r = ncclGroupStart();
    for (int c = 0; c < g->size; c++) {
        struct group_chunk k = chunk_of(g, op, c);
        void *part = at(data, wire, k.off);
        if (k.n == 0 || !nccl_has_begun(r))
            continue;
        if (op->verb == GROUP_REDUCE_SCATTER)
            r = ncclReduce(part, part, k.n, type, ncclSum, c, n->comm,
                           n->stream);
        else
            r = ncclBroadcast(part, part, k.n, type, c, n->comm, n->stream);
    }
    return nccl_grouped(g, r, group_verb_name(op->verb));
}

static int move_chunks(struct group *g, const struct group_op *op, void *data)
{
    const struct nccl *n = g->state;
    enum dtype wire = op->vector.wire;
    struct group_chunk own = chunk_of(g, op, g->rank);
    void *part = at(data, wire, own.off);
    if (!has_equal_chunks(g, op))
        return move_each(g, op, data);
    ncclResult_t r = op->verb == GROUP_REDUCE_SCATTER
                         ? ncclReduceScatter(data, part, own.n, nccl_type(wire),
                                             ncclSum, n->comm, n->stream)
                         : ncclAllGather(part, data, own.n, nccl_type(wire),
                                         n->comm, n->stream);
    return nccl_asked(g, r, group_verb_name(op->verb));
}

static int move(struct group *g, const struct group_op *op, void *data)
{
    const struct nccl *n = g->state;
    size_t count = op->vector.n;
    ncclDataType_t type = nccl_type(op->vector.wire);
    ncclResult_t r;
    switch (op->verb) {
    case GROUP_ALL_REDUCE:
        r = ncclAllReduce(data, data, count, type, ncclSum, n->comm, n->stream);
        break;
    case GROUP_BROADCAST:
        r = ncclBroadcast(data, data, count, type, op->peer, n->comm,
                          n->stream);
        break;
    case GROUP_REDUCE:
        r = ncclReduce(data, data, count, type, ncclSum, op->peer, n->comm,
                       n->stream);
        break;
    case GROUP_SEND:
        r = ncclSend(data, count, type, op->peer, n->comm, n->stream);
        break;
    case GROUP_RECV:
        r = ncclRecv(data, count, type, op->peer, n->comm, n->stream);
        break;
    case GROUP_ALL_TO_ALL:
        return nccl_all_to_all(g, op);
    default:
        return move_chunks(g, op, data);
    }
    return nccl_asked(g, r, group_verb_name(op->verb));
}

static void cast(const struct group *g, void *dst, enum dtype to, void *src,
                 enum dtype from, float scale, struct group_chunk part)
{
    device_cast_on(g->job.dev, DEVICE_COMM, at(dst, to, part.off), to,
                   at(src, from, part.off), from, scale, part.n);
}

// Moves fp32 numbers that travel in 16 bits. After an all_gather or a broadcast
// all members must have the same numbers. So the member that gives them also
// rounds them in its own vector.
static int move_half(struct group *g, const struct group_op *op)
{
    const struct library *l = g->state;
    const struct group_vector *v = &op->vector;
    struct group_chunk given = operand_given(g, op);
    bool result = op->verb == GROUP_ALL_GATHER || op->verb == GROUP_BROADCAST;
    cast(g, l->half, v->wire, v->data, DTYPE_F32, v->scale, given);
    if (result)
        cast(g, v->data, DTYPE_F32, l->half, v->wire, 1, given);
    if (move(g, op, l->half))
        return -1;
    cast(g, v->data, DTYPE_F32, l->half, v->wire, 1, operand_taken(g, op));
    return 0;
}

static int library_begin(struct group *g, const struct group_op *op)
{
    operands_count(g, op);
    nccl_begin(g);
    if (group_casts(&op->vector) ? move_half(g, op)
                                 : move(g, op, op->vector.data))
        return -1;
    nccl_end(g);
    return 0;
}

static int library_open(struct group *g)
{
    struct library *l = g->state;
    if (g->job.largest) {
        l->half = device_alloc(g->job.dev, g->job.largest, sizeof(uint16_t));
        if (!l->half)
            return -1;
    }
    return nccl_open(g);
}

static void library_close(struct group *g)
{
    struct library *l = g->state;
    nccl_close(g);
    device_free(g->job.dev, l->half);
}

const struct group_ops library_nccl = {
    .name = "nccl",
    .library = true,
    .on_device = true,
    .state_size = sizeof(struct library),
    .grain = NCCL_GRAIN,
    .is_supported = nccl_is_supported,
    .open = library_open,
    .begin = library_begin,
    .advance = nccl_advance,
    .wait = nccl_wait,
    .follow = nccl_follow,
    .abort = nccl_abort,
    .close = library_close,
};
