// flow.c - moves vectors round the ring, slice by slice.
//
// A cursor goes through these states, for one slice after the other:
//
//            begin_send()          push(): the last byte has left
//     out    idle -------> busy ----------------------------------> idle
//            pull(): head          check_head()        landed()
//     in     idle -------> busy ---------------> busy ------------> idle
//                                  HEAD_STUCK: idle again
//
// settle() moves a cursor on when it becomes idle. flow_wait() makes the cursor
// `out` busy with a HEAD_STUCK, which moves no cursor on.
//
//  1. A cursor that is idle is at the next slice that is not empty; if no
//     posted verb has one, at verb number `posted`.
//  2. flow_done() = min(out.op, in.op): a verb is done when both cursors have
//     passed it. posted - flow_done() <= depth.
//  3. A cursor works on verb k only after the other has passed verb k -
//     WIRE_OPS (can_send(), can_receive()): the two verbs share one of the
//     wire's vectors in 16 bits. An idle cursor may be up to `depth` verbs
//     ahead: settle() passes verbs in which this member has nothing to move.
//  4. A slice is sent only after the slice from which it is made has landed, or
//     if it is this member's own (can_send()).
//  5. The bytes of a stream are whole slices, HEAD_STUCK and at the end
//     HEAD_ABORT: no head comes in the middle of a slice.
//  6. To the left goes nothing but one HEAD_ABORT.

#include "horovod_ring/flow.h"

#include "base/base.h"
#include "telemetry/span.h"

#include <sched.h>
#include <stdio.h>

void flow_open(struct flow *f)
{
    f->plan.rank = f->streams->rank;
    f->plan.world = f->streams->world;
    f->blame = f->told = -1;
}

static int member_at(const struct flow *f, int link)
{
    return f->streams->links[link].member;
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
        .message = (uint16_t)c->message,
        .number = (uint32_t)c->op,
        .bytes = s.n * dtype_bytes(op->vector.wire),
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
    ssize_t sent = f->streams->ops->send(f->streams, RIGHT, v, n);
    if (sent < 0)
        f->streams->culprit = member_at(f, RIGHT);
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

// A head has come from the left. Fails if it is not the one that is due.
static int check_head(struct flow *f)
{
    struct cursor *c = &f->in;
    const struct head *h = &c->head;
    int left = member_at(f, LEFT);
    if (streams_check(f->streams, LEFT, h, HEAD_SLICE))
        return -1;
    if (h->kind == HEAD_STUCK) {
        f->blame = (int)h->number;
        c->busy = false;
        return 0;
    }
    const struct group_op *op = op_of(f, c->op);
    struct group_chunk s = slice_at(f, c, IN);
    size_t bytes = s.n * dtype_bytes(op->vector.wire);
    if (h->number != (uint32_t)c->op || h->message != (uint16_t)c->message ||
        h->bytes != bytes) {
        f->streams->culprit = left;
        return fail("%s: rank %d sent message %u of exchange %u with %llu "
                    "bytes; expected message %d of exchange %u with %zu bytes",
                    f->streams->name, streams_rank(f->streams, left),
                    h->message, h->number, (unsigned long long)h->bytes,
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
    ssize_t got = f->streams->ops->recv(f->streams, LEFT, to + at, due - at);
    if (got < 0) {
        f->streams->culprit = member_at(f, LEFT);
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
    struct streams *p = f->streams;
    ssize_t got = 1;
    while (got > 0 && f->back_done < sizeof f->back) {
        got = p->ops->recv(p, RIGHT, (char *)&f->back + f->back_done,
                           sizeof f->back - f->back_done);
        if (got < 0) {
            p->culprit = member_at(f, RIGHT);
            return -1;
        }
        f->back_done += (size_t)got;
    }
    if (f->back_done < sizeof f->back)
        return 0;
    return streams_check(p, RIGHT, &f->back, HEAD_ABORT);
}

// A neighbour is lost. If the right neighbour gave a reason before, that reason
// explains the failure better.
static int explain(struct flow *f)
{
    char why[256];
    int culprit = f->streams->culprit;
    snprintf(why, sizeof why, "%s", fail_message());
    if (hear_right(f) && f->back_done == sizeof f->back)
        return -1;
    f->streams->culprit = culprit;
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
        return member_at(f, RIGHT);
    bool other = f->blame >= 0 && f->blame != f->streams->rank;
    return other ? f->blame : member_at(f, LEFT);
}

// What the next wait is for: bytes from the left, room to the right, or a
// report from the right.
static void want(struct flow *f, bool in, bool out, bool hear)
{
    f->streams->links[LEFT].wants = in ? STREAMS_IN : 0;
    f->streams->links[RIGHT].wants =
        (out ? STREAMS_OUT : 0) | (hear ? STREAMS_HEAR : 0);
}

int flow_wait(struct flow *f, uint64_t spin_ns)
{
    struct streams *p = f->streams;
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
        char exchange[40];
        snprintf(exchange, sizeof exchange, "exchange %llu",
                 (unsigned long long)flow_done(f));
        return streams_late(p, whom, f->timeout_s, exchange);
    }
    // Half-way to the deadline, tell the right neighbour for whom we wait, so
    // that it does not blame us.
    if (idle >= limit / 2 && !f->out.busy && f->told != whom) {
        f->out.busy = true;
        f->out.done = 0;
        f->out.head =
            (struct head){.kind = HEAD_STUCK, .number = (uint32_t)whom};
        f->told = whom;
        if (push(f) < 0)
            return -1;
    }
    bool hears = f->out.op < f->posted;
    want(f, can_receive(f), f->out.busy, hears);
    uint64_t next = idle < limit / 2 ? limit / 2 - idle : limit - waited;
    if (p->ops->wait(p, (int)(next / 1000000) + 1))
        return -1;
    return hears ? hear_right(f) : 0;
}

void flow_abort(struct flow *f)
{
    struct streams *p = f->streams;
    streams_abort(p, LEFT);
    if (p->culprit == member_at(f, RIGHT))
        return;
    // First finish a slice that has begun: the right neighbour may be reading.
    want(f, false, true, false);
    for (int i = 0; f->out.busy && i < 50; i++)
        if (push(f) < 0 || p->ops->wait(p, 10))
            return;
    if (!f->out.busy)
        streams_abort(p, RIGHT);
}
