// flow.c - moves vectors round the ring, slice by slice.

#include "horovod_ring/flow.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "telemetry/span.h"

#include <sched.h>
#include <stdio.h>

enum head_kind {
    HEAD_SLICE = 0x52494e47, // "RING"
    HEAD_STUCK,              // the sender waits for rank `message`
    HEAD_ABORT,              // the sender gave up because of rank `message`
};

void flow_open(struct flow *f)
{
    f->plan.rank = f->transport->rank;
    f->plan.world = f->transport->world;
    f->blame = f->told = f->culprit = -1;
}

static const struct group_op *op_of(const struct flow *f, uint64_t k)
{
    return &f->ops[k % f->depth];
}

// The slice at a cursor, as elements of the vector.
static struct group_chunk slice_at(const struct flow *f, const struct cursor *c,
                                   enum direction d)
{
    const struct group_op *op = op_of(f, c->op);
    struct group_chunk s = plan_span(&f->plan, op, d, c->message);
    size_t most = f->slice_bytes / dtype_bytes(op->vector.wire);
    size_t left = s.n - c->off;
    return (struct group_chunk){s.off + c->off, left < most ? left : most};
}

// Moves the cursor on to the next slice that is not empty. If no posted verb
// has one, moves it to the start of the next verb to be posted.
static void settle(struct flow *f, struct cursor *c, enum direction d)
{
    for (; c->op < f->posted; c->op++, c->message = 0) {
        int messages = plan_messages(&f->plan, op_of(f, c->op), d);
        for (; c->message < messages; c->message++, c->off = 0)
            if (slice_at(f, c, d).n > 0)
                return;
    }
}

void flow_post(struct flow *f, const struct group_op *op)
{
    CHECK(f->posted - flow_done(f) < f->depth);
    if (flow_done(f) == f->posted)
        f->moved_ns = now_ns();
    f->ops[f->posted % f->depth] = *op;
    f->posted++;
    settle(f, &f->out, OUT);
    settle(f, &f->in, IN);
}

uint64_t flow_done(const struct flow *f)
{
    return f->out.op < f->in.op ? f->out.op : f->in.op;
}

// Whether the next slice can be sent: it is our own, or it has come in.
static bool can_send(const struct flow *f)
{
    const struct cursor *out = &f->out, *in = &f->in;
    if (out->op == f->posted || out->op >= in->op + WIRE_OPS)
        return false;
    int from = out->message - plan_lag(&f->plan, op_of(f, out->op));
    if (from < 0 || in->op > out->op)
        return true;
    if (in->op < out->op || in->message < from)
        return false;
    size_t n = slice_at(f, out, OUT).n;
    return in->message > from || in->off >= out->off + n;
}

static bool can_receive(const struct flow *f)
{
    return f->in.op < f->posted && f->in.op < f->out.op + WIRE_OPS;
}

static void begin_send(struct flow *f)
{
    struct cursor *c = &f->out;
    const struct group_op *op = op_of(f, c->op);
    struct group_chunk s = slice_at(f, c, OUT);
    bool own = plan_is_own(&f->plan, op, c->message);
    bool result = !group_is_sum(op->verb);
    const void *from = wire_leave(f->wire, &op->vector, c->op, s, own, result);
    c->busy = true;
    c->done = 0;
    c->begun_ns = now_ns();
    c->payload = (char *)from; // only read from
    c->head = (struct head){
        .kind = HEAD_SLICE,
        .op = (uint32_t)c->op,
        .message = (uint32_t)c->message,
        .bytes = (uint32_t)(s.n * dtype_bytes(op->vector.wire)),
    };
}

static void moved(struct flow *f)
{
    f->moved_ns = now_ns();
    f->told = -1;
}

// Send a part of the present slice. Returns 1 if bytes moved, 0 if not, -1
// after fail() if the right neighbour is lost.
static int push(struct flow *f)
{
    struct cursor *c = &f->out;
    struct iovec v[2];
    int n = 0;
    size_t skip = c->done, all = sizeof c->head + c->head.bytes;
    if (skip < sizeof c->head) {
        v[n++] = (struct iovec){(char *)&c->head + skip, sizeof c->head - skip};
        skip = sizeof c->head;
    }
    if (skip < all)
        v[n++] =
            (struct iovec){c->payload + (skip - sizeof c->head), all - skip};
    ssize_t sent = f->transport->ops->send(f->transport, RIGHT, v, n);
    if (sent < 0)
        f->culprit = f->transport->peer[RIGHT];
    if (sent <= 0)
        return (int)sent;
    if (c->head.kind == HEAD_SLICE)
        moved(f);
    c->done += (size_t)sent;
    if (c->done < all)
        return 1;
    c->busy = false;
    f->counted.head_out += sizeof c->head;
    if (c->head.kind == HEAD_SLICE) {
        group_count(&f->counted, op_of(f, c->op)->verb, c->head.bytes, 0);
        span_carries(c->lane, c->head.bytes);
        span_add(c->lane, SPAN_SEND, (int)c->op, c->begun_ns, now_ns());
        c->off += slice_at(f, c, OUT).n;
        settle(f, c, OUT);
    }
    return 1;
}

// The rank in the whole job, by which error messages name a member.
static int job_rank(const struct flow *f, int member)
{
    return cluster_job_rank(f->transport->ranks, member);
}

static int given_up(struct flow *f, const struct head *h, enum side by)
{
    f->culprit = (int)h->message;
    return fail("%s: rank %d failed, says rank %d", f->name,
                job_rank(f, f->culprit), job_rank(f, f->transport->peer[by]));
}

// A head has come from the left. Fails if it is not the one that is due.
static int check_head(struct flow *f)
{
    struct cursor *c = &f->in;
    const struct head *h = &c->head;
    int left = f->transport->peer[LEFT];
    if (h->kind == HEAD_ABORT && h->message < (uint32_t)f->transport->world)
        return given_up(f, h, LEFT);
    if (h->kind == HEAD_STUCK && h->message < (uint32_t)f->transport->world) {
        f->blame = (int)h->message;
        c->busy = false;
        return 0;
    }
    const struct group_op *op = op_of(f, c->op);
    struct group_chunk s = slice_at(f, c, IN);
    size_t bytes = s.n * dtype_bytes(op->vector.wire);
    if (h->kind != HEAD_SLICE || h->op != (uint32_t)c->op ||
        h->message != (uint32_t)c->message || h->bytes != bytes) {
        f->culprit = left;
        return fail("%s: rank %d sent message %u of exchange %u with %u bytes; "
                    "expected message %d of exchange %u with %zu bytes",
                    f->name, job_rank(f, left), h->message, h->op, h->bytes,
                    c->message, (uint32_t)c->op, bytes);
    }
    bool adds = plan_adds(&f->plan, op, c->message);
    c->payload = wire_land(f->wire, &op->vector, c->op, s, adds);
    moved(f);
    return 0;
}

static void landed(struct flow *f)
{
    struct cursor *c = &f->in;
    const struct group_op *op = op_of(f, c->op);
    struct group_chunk s = slice_at(f, c, IN);
    uint64_t came_ns = now_ns();
    span_carries(c->lane, c->head.bytes);
    span_add(c->lane, SPAN_RECEIVE, (int)c->op, c->begun_ns, came_ns);
    wire_landed(f->wire, &op->vector, c->op, s,
                plan_adds(&f->plan, op, c->message),
                plan_completes(&f->plan, op, c->message));
    span_add(c->lane, SPAN_ADD, (int)c->op, came_ns, now_ns());
    group_count(&f->counted, op->verb, 0, c->head.bytes);
    f->blame = -1;
    c->busy = false;
    c->off += s.n;
    settle(f, c, IN);
}

// Receive a part of a head or a slice. Returns 1 if bytes moved, 0 if not, -1
// after fail().
static int pull(struct flow *f)
{
    struct cursor *c = &f->in;
    if (!c->busy)
        c->done = 0;
    c->busy = true;
    bool head = c->done < sizeof c->head;
    size_t at = head ? c->done : c->done - sizeof c->head;
    char *to = head ? (char *)&c->head : c->payload;
    size_t due = head ? sizeof c->head : c->head.bytes;
    ssize_t got =
        f->transport->ops->recv(f->transport, LEFT, to + at, due - at);
    if (got < 0) {
        f->culprit = f->transport->peer[LEFT];
        return fail("%s after %zu of %zu bytes of message %d of exchange %llu",
                    fail_message(), at, due, c->message,
                    (unsigned long long)c->op);
    }
    if (got == 0)
        return 0;
    if (c->done == 0)
        c->begun_ns = now_ns();
    c->done += (size_t)got;
    if (at + (size_t)got < due)
        return 1;
    if (!head) {
        moved(f);
        landed(f);
        return 1;
    }
    f->counted.head_in += sizeof c->head;
    return check_head(f) ? -1 : 1;
}

// Reads from the right neighbour, which only sends when it gives up.
static int hear_right(struct flow *f)
{
    struct transport *t = f->transport;
    ssize_t got = 1;
    while (got > 0 && f->back_done < sizeof f->back) {
        got = t->ops->recv(t, RIGHT, (char *)&f->back + f->back_done,
                           sizeof f->back - f->back_done);
        if (got < 0) {
            f->culprit = t->peer[RIGHT];
            return -1;
        }
        f->back_done += (size_t)got;
    }
    if (f->back_done < sizeof f->back)
        return 0;
    if (f->back.kind == HEAD_ABORT && f->back.message < (uint32_t)t->world)
        return given_up(f, &f->back, RIGHT);
    f->culprit = t->peer[RIGHT];
    return fail("%s: rank %d sent bytes that are no message", f->name,
                job_rank(f, f->culprit));
}

// A neighbour is lost. If the right neighbour gave a reason before, that reason
// explains the failure better.
static int explain(struct flow *f)
{
    char why[256];
    int culprit = f->culprit;
    snprintf(why, sizeof why, "%s", fail_message());
    if (hear_right(f) && f->back_done == sizeof f->back)
        return -1;
    f->culprit = culprit;
    return fail("%s", why);
}

int flow_advance(struct flow *f)
{
    for (int out = 1, in = 1; out || in;) {
        out = in = 0;
        if (!f->out.busy && can_send(f))
            begin_send(f);
        if (f->out.busy)
            out = push(f);
        if (out >= 0 && can_receive(f))
            in = pull(f);
        if (out < 0 || in < 0)
            return explain(f);
    }
    return 0;
}

// The rank that we wait for: the left neighbour, or the rank that the left
// neighbour waits for, or the right neighbour.
static int waiting_for(const struct flow *f)
{
    if (!can_receive(f))
        return f->transport->peer[RIGHT];
    bool other = f->blame >= 0 && f->blame != f->transport->rank;
    return other ? f->blame : f->transport->peer[LEFT];
}

int flow_wait(struct flow *f, uint64_t spin_ns)
{
    struct transport *t = f->transport;
    CHECK(flow_done(f) < f->posted);
    uint64_t limit = (uint64_t)(f->timeout_s * 1e9);
    uint64_t idle = now_ns() - f->moved_ns;
    uint64_t waited = group_waited(f->since_ns, f->moved_ns);
    if (idle < spin_ns) {
        sched_yield(); // the rank we wait for may need this core
        return 0;
    }
    int whom = waiting_for(f);
    if (waited >= limit) {
        if (f->out.op < f->posted && hear_right(f))
            return -1; // the right neighbour has given up, and said why
        f->culprit = whom;
        return fail("%s: nothing from rank %d for %g s, in exchange %llu; "
                    "try: look at its log, or a longer timeout=",
                    f->name, job_rank(f, whom), f->timeout_s,
                    (unsigned long long)flow_done(f));
    }
    // Half-way to the deadline, tell the right neighbour for whom we wait, so
    // that it does not blame us.
    if (idle >= limit / 2 && !f->out.busy && f->told != whom) {
        f->out.busy = true;
        f->out.done = 0;
        f->out.head =
            (struct head){.kind = HEAD_STUCK, .message = (uint32_t)whom};
        f->told = whom;
        if (push(f) < 0)
            return -1;
    }
    unsigned wants = can_receive(f) ? WANT_RECV_LEFT : 0;
    if (f->out.op < f->posted)
        wants |= WANT_RECV_RIGHT;
    if (f->out.busy)
        wants |= WANT_SEND_RIGHT;
    uint64_t next = idle < limit / 2 ? limit / 2 - idle : limit - waited;
    if (t->ops->wait(t, wants, (int)(next / 1000000) + 1))
        return -1;
    return wants & WANT_RECV_RIGHT ? hear_right(f) : 0;
}

void flow_abort(struct flow *f)
{
    struct transport *t = f->transport;
    int culprit = f->culprit < 0 ? t->rank : f->culprit;
    struct head h = {.kind = HEAD_ABORT, .message = (uint32_t)culprit};
    struct iovec v = {&h, sizeof h};
    // From here on errors are ignored: no neighbour is left to report them to.
    if (culprit != t->peer[LEFT])
        (void)t->ops->send(t, LEFT, &v, 1);
    if (culprit == t->peer[RIGHT])
        return;
    // First finish a slice that has begun: the right neighbour may be reading.
    for (int i = 0; f->out.busy && i < 50; i++)
        if (push(f) < 0 || t->ops->wait(t, WANT_SEND_RIGHT, 10))
            return;
    if (!f->out.busy)
        (void)t->ops->send(t, RIGHT, &v, 1);
}
