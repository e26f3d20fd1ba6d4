// ring_nccl.c - does the verbs of group.h with our ring between GPUs: NCCL's
// messages between neighbours, and our own additions.
//
// The timetable is that of plan.h, as over sockets. A member sends the chunk
// that it received in the message before, with its own share added where the
// plan says so. All messages of a verb are queued at once, and the GPU works on
// them while backward runs. Chains (broadcast, reduce) travel in slices, so
// that all their links are busy.
//
// The arithmetic is that of ring_wire.h. If the wire is as wide as the vector,
// numbers are added in the vector's type. With a 16-bit wire, numbers are first
// multiplied by the scale; each hop adds in fp32 and rounds once; the rounded
// result travels round, so that all members have the same bits.

#include "horovod_ring/carriers.h"

#include "horovod_ring/plan.h"

#include "base/base.h"
#include "group/nccl.h"

struct ring {
    struct nccl nccl; // must be first
    char *buffers[2]; // receive buffers on the device
    size_t bytes[2];  // their sizes
};

// One message out and one in; either may be empty.
struct message {
    struct group_chunk out, in;
    bool own, adds, completes; // see plan.h
};

static struct plan plan_of(const struct group *g)
{
    return (
        struct plan){.rank = g->rank, .world = g->size, .grain = g->job.grain};
}

// ---- the timetable

static size_t slice_elements(const struct group *g, const struct group_op *op)
{
    return g->job.slice_bytes / dtype_bytes(op->vector.wire);
}

// How many messages (struct message) this member of a chain has. In message m
// the first member sends slice m, and the second member receives it. In message
// m + 1 the second member sends that slice on. The last member sends nothing.
static int chain_messages(const struct group *g, const struct plan *p,
                          const struct group_op *op)
{
    size_t slice = slice_elements(g, op);
    int slices = (int)((op->vector.n + slice - 1) / slice);
    return slices + (plan_messages(p, op, OUT) && !plan_is_own(p, op, 0));
}

static struct group_chunk slice_at(const struct group *g,
                                   const struct group_op *op, int k)
{
    size_t n = op->vector.n, slice = slice_elements(g, op);
    size_t off = (size_t)k * slice;
    if (k < 0 || off >= n)
        return (struct group_chunk){0, 0};
    return (struct group_chunk){off, n - off < slice ? n - off : slice};
}

static struct message message_at(const struct group *g, const struct plan *p,
                                 const struct group_op *op, int m)
{
    bool chain = plan_is_chain(op);
    int k = chain ? 0 : m;
    struct message x = {.own = plan_is_own(p, op, k),
                        .adds = plan_adds(p, op, k),
                        .completes = plan_completes(p, op, k)};
    if (!chain || plan_messages(p, op, IN))
        x.in = chain ? slice_at(g, op, m) : plan_span(p, op, IN, m);
    if (!chain || plan_messages(p, op, OUT))
        x.out = chain ? slice_at(g, op, x.own ? m : m - 1)
                      : plan_span(p, op, OUT, m);
    return x;
}

// ---- one verb

// Makes receive buffer i at least `bytes` bytes long. Before a buffer is
// reallocated, all verbs that may use it must be complete.
static int fit(struct group *g, int i, size_t bytes)
{
    struct ring *r = g->state;
    if (bytes <= r->bytes[i])
        return 0;
    if (nccl_await_all(g))
        return -1;
    device_free(g->job.dev, r->buffers[i]);
    r->bytes[i] = 0;
    r->buffers[i] = device_alloc(g->job.dev, bytes, 1);
    if (!r->buffers[i])
        return -1;
    r->bytes[i] = bytes;
    return 0;
}

static int fit_buffers(struct group *g, const struct plan *p,
                       const struct group_op *op)
{
    size_t n = op->vector.n;
    size_t most = group_longest(&op->vector, p->grain, p->world);
    bool half = group_casts(&op->vector);
    if (plan_is_chain(op))
        most = slice_elements(g, op);
    if (group_is_pair(op->verb))
        most = n;
    size_t bytes = most * dtype_bytes(op->vector.wire);
    if (!half && !plan_adds(p, op, 0))
        return 0;
    return fit(g, 0, bytes) || (half && fit(g, 1, bytes)) ? -1 : 0;
}

// Queues one message to the right and one from the left, which run at once.
static int exchange(struct group *g, const void *out, size_t nout, void *in,
                    size_t nin, enum dtype type)
{
    const struct nccl *n = g->state;
    int right = (g->rank + 1) % g->size;
    int left = (g->rank + g->size - 1) % g->size;
    ncclDataType_t t = nccl_type(type);
    ncclResult_t first = ncclGroupStart();
    if (nout && first == ncclSuccess)
        first = ncclSend(out, nout, t, right, n->comm, n->stream);
    if (nin && nccl_has_begun(first))
        first = ncclRecv(in, nin, t, left, n->comm, n->stream);
    return nccl_grouped(g, first, "exchange");
}

static void cast(struct group *g, void *dst, enum dtype to, const void *src,
                 enum dtype from, float scale, size_t n)
{
    device_cast_on(g->job.dev, DEVICE_COMM, dst, to, src, from, scale, n);
}

// For a wire as wide as the vector. Chunks are sent from the vector. A chunk
// that comes in is added to the vector, or stored in it.
static int pass_wide(struct group *g, const struct group_op *op,
                     const struct message *m)
{
    struct ring *r = g->state;
    const struct group_vector *v = &op->vector;
    void *to = group_at(v, m->in.off), *landing = m->adds ? r->buffers[0] : to;
    if (exchange(g, group_at(v, m->out.off), m->out.n, landing, m->in.n,
                 v->wire))
        return -1;
    if (m->adds && m->in.n)
        device_add_on(g->job.dev, DEVICE_COMM, to, landing, v->type, m->in.n);
    return 0;
}

// For fp32 numbers in a 16-bit wire. The chunk that came in, with our share
// added, is sent next. If a verb does not sum, all members must have the same
// numbers after it. So a member also rounds, in its own vector, the numbers
// that it contributes.
static int pass_half(struct group *g, const struct group_op *op,
                     const struct message *m, int k)
{
    struct ring *r = g->state;
    const struct group_vector *v = &op->vector;
    char *leaves = r->buffers[k % 2], *lands = r->buffers[1 - k % 2];
    float *from = group_at(v, m->out.off), *to = group_at(v, m->in.off);
    bool result = !group_is_sum(op->verb);
    if (m->own)
        cast(g, leaves, v->wire, from, DTYPE_F32, 1, m->out.n);
    if (m->own && result)
        cast(g, from, DTYPE_F32, leaves, v->wire, 1, m->out.n);
    if (exchange(g, leaves, m->out.n, lands, m->in.n, v->wire))
        return -1;
    if (m->adds)
        device_add_into_wire(g->job.dev, DEVICE_COMM, lands, v->wire, to,
                             m->in.n);
    if (m->completes)
        cast(g, to, DTYPE_F32, lands, v->wire, 1, m->in.n);
    return 0;
}

static int pass_all(struct group *g, const struct plan *p,
                    const struct group_op *op)
{
    const struct group_vector *v = &op->vector;
    bool half = group_casts(v);
    int count = plan_is_chain(op) ? chain_messages(g, p, op)
                                  : plan_messages(p, op, OUT);
    if (v->scale != 1)
        cast(g, v->data, DTYPE_F32, v->data, DTYPE_F32, v->scale, v->n);
    for (int k = 0; k < count; k++) {
        struct message m = message_at(g, p, op, k);
        if (half ? pass_half(g, op, &m, k) : pass_wide(g, op, &m))
            return -1;
    }
    return 0;
}

// A send or a receive: one message to or from any member. A sender's vector
// stays as it is.
static int pass_pair(struct group *g, const struct group_op *op)
{
    const struct ring *r = g->state;
    const struct nccl *n = &r->nccl;
    const struct group_vector *v = &op->vector;
    ncclDataType_t type = nccl_type(v->wire);
    bool half = group_casts(v), sends = op->verb == GROUP_SEND;
    void *data = half ? r->buffers[0] : v->data;
    if (half && sends)
        cast(g, data, v->wire, v->data, v->type, 1, v->n);
    ncclResult_t result =
        sends ? ncclSend(data, v->n, type, op->peer, n->comm, n->stream)
              : ncclRecv(data, v->n, type, op->peer, n->comm, n->stream);
    if (nccl_asked(g, result, group_verb_name(op->verb)))
        return -1;
    if (half && !sends)
        cast(g, v->data, v->type, data, v->wire, 1, v->n);
    return 0;
}

// ---- a group's functions

static int pass(struct group *g, const struct plan *p,
                const struct group_op *op)
{
    if (group_is_pair(op->verb))
        return pass_pair(g, op);
    return op->verb == GROUP_ALL_TO_ALL ? nccl_all_to_all(g, op)
                                        : pass_all(g, p, op);
}

static int ring_begin(struct group *g, const struct group_op *op)
{
    const struct plan p = plan_of(g);
    size_t size = dtype_bytes(op->vector.wire);
    group_count(&g->moved, op->verb, plan_elements(&p, op, OUT) * size,
                plan_elements(&p, op, IN) * size);
    if (fit_buffers(g, &p, op))
        return -1;
    nccl_begin(g);
    if (pass(g, &p, op))
        return -1;
    nccl_end(g);
    return 0;
}

static void ring_close(struct group *g)
{
    struct ring *r = g->state;
    nccl_close(g);
    for (int i = 0; i < 2; i++)
        device_free(g->job.dev, r->buffers[i]);
}

const struct group_ops ring_nccl = {
    .name = "nccl",
    .on_device = true,
    .state_size = sizeof(struct ring),
    .grain = NCCL_GRAIN,
    .is_supported = nccl_is_supported,
    .open = nccl_open,
    .begin = ring_begin,
    .advance = nccl_advance,
    .wait = nccl_wait,
    .follow = nccl_follow,
    .abort = nccl_abort,
    .close = ring_close,
};
