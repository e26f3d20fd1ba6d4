// bsp.c - rounds: all workers' gradients of a step, added in rank order.
//
// Slices of a row are added in the order of ranks, whatever the order of
// arrival, so that reruns give the same bits. A slice that arrives early stays
// in its message until it is due; credits limit how many such messages there
// are.
//
// update=worker: the server sends the sum of a row as soon as the last slice of
// that row has arrived. update=server: the reply is deferred, because clipping
// and the overflow test need the norm of the whole gradient. A single server
// knows the norm after the last row. With several servers, each sends its sum
// of squares to a worker (NORM), which adds these sums and sends the total back
// (COMMIT).
//
// backup=B: only the first N of N+B gradients are used, and all servers must
// use the same ones. So a worker asks server 0 (CLAIM) before it pushes.
//
// A round goes through these states:
//
//              check_round(),            finish_if_complete():
//              bsp_claim()               all rows and all STEPs are here
//     begun  ---------------->  active  ----------------------->  finished
//              first message      |                                  |
//       ^                         | several servers that update      |
//       |                         v  bsp_commit()                    |
//       |                      waiting ----------------------------> |
//       |                                                 next_round(): round+1
//       +------------------------------------------------------------+
//
//     restart(): a worker is gone or was dropped, or one that joins was counted
//     too early; the same round begins again, epoch+1
//
//  1. rank_of[] and order_of[] are inverse to each other where they are >= 0,
//     and places are 0 .. need-1. A rank without a place is refused
//     (check_turn()).
//  2. here[order] of a row is set once in a round; a second slice is refused
//     (bsp_push()). Slices of a row are added in the order of places, without a
//     gap: 0 .. added-1.
//  3. `complete` counts the rows with added = need, and `stepped` the peers
//     whose `stepped` is set.
//  4. While `waiting` is set, all rows are complete and no slice can come. So
//     only a COMMIT, a DROP, or the loss or BYE of a worker ends the state.
//  5. The round number grows in next_round(), and where nobody is left in a
//     round (begin_if_joined()). The epoch grows in restart() only. An answer
//     has both (bsp_answer()); a message of an earlier epoch is dropped.

#include "ps_server/bsp.h"
#include "ps_server/answers.h"

#include "base/base.h"
#include "telemetry/span.h"

#include <math.h>
#include <string.h>

static size_t row_bytes(const struct server *s, int row)
{
    return s->store->rows[row].at.n * dtype_bytes(s->job.wire);
}

static int bsp_open(struct server *s)
{
    struct bsp *b = s->state = mem_alloc(1, sizeof *b);
    if (!b)
        return -1;
    size_t world = (size_t)s->job.world;
    b->rank_of = mem_alloc(world, sizeof *b->rank_of);
    b->order_of = mem_alloc(world, sizeof *b->order_of);
    b->rows = mem_alloc((size_t)s->store->nrows + 1, sizeof *b->rows);
    int rc = b->rank_of && b->order_of && b->rows ? 0 : -1;
    for (int r = 0; !rc && r < s->store->nrows; r++)
        rc = gather_open(&b->rows[r], s->job.world);
    return rc;
}

// Call it before the endpoint closes: it gives kept messages back.
static void bsp_close(struct server *s)
{
    struct bsp *b = s->state;
    if (!b)
        return;
    for (int r = 0; b->rows && r < s->store->nrows; r++)
        gather_close(&b->rows[r], s->job.world);
    mem_free(b->rows);
    mem_free(b->order_of);
    mem_free(b->rank_of);
    mem_free(b);
    s->state = NULL;
}

// ---- a round ends

static void send_result(struct server *s, double norm, bool skipped)
{
    const struct bsp *b = bsp_of(s);
    const struct ps_result r = {.norm = norm, .skipped = skipped};
    s->used += skipped ? 0 : (uint64_t)b->need;
    for (int t = 0; t < b->need; t++)
        server_send_result(s, b->rank_of[t], bsp_answer(s, PS_RESULT), r);
}

// Send a row to all workers of the round. The caller has counted its bytes.
static void send_row(struct server *s, int row, enum ps_what what,
                     struct buffer *data, enum dtype type, size_t bytes)
{
    const struct bsp *b = bsp_of(s);
    struct ps_head h = bsp_answer(s, PS_SLICE);
    h.what = what;
    h.dtype = type;
    h.row = (uint32_t)row;
    h.version = s->store->rows[row].version;
    span_begin(s->lane, SPAN_SEND, row);
    // each server begins with a different worker, so that all links are used
    for (int t = 0; t < b->need; t++)
        server_send_buffer(s, b->rank_of[(s->job.index + 1 + t) % b->need], h,
                           data, bytes);
    span_end(s->lane);
}

static void count_served(struct server *s, size_t bytes)
{
    const struct bsp *b = bsp_of(s);
    for (int t = 0; t < b->need; t++)
        if (!server_beside(s, b->rank_of[t]))
            s->served_out += bytes;
}

static void next_round(struct server *s)
{
    s->round++;
    span_count(s->lane, COUNTER_BYTES, (double)(s->served_out + s->served_in));
    bsp_begin(s);
    vectors_serve(s);
}

// The norm of the whole gradient is known: update, or skip the step.
static void finish_round(struct server *s, double squares)
{
    const struct bsp *b = bsp_of(s);
    const struct ps_step *step = &s->peers[b->rank_of[0]].step;
    // the mean over the workers of the round; undo the scaling of a 16-bit wire
    float scale = step->grad_scale * ps_divisor(s->job.world, s->job.wire) *
                  ((float)s->job.world / (float)b->need);
    float norm;
    scale = optim_clip_scale(squares, scale, step->clip, &norm);
    bool skipped = !isfinite(norm);
    if (!skipped)
        count_served(s, shard_elements(&s->store->shard) * sizeof(float));
    send_result(s, (double)norm, skipped);
    // with priority, the model's first rows are sent first: backward fills them
    // last, and the next forward needs them first
    for (int i = 0; !skipped && i < s->store->nrows; i++) {
        int row = s->job.priority ? s->store->nrows - 1 - i : i;
        span_begin(s->lane, SPAN_UPDATE, row);
        int rc = store_update(s->store, row, b->rows[row].sum->data,
                              (int)step->step, step->lr, scale);
        span_end(s->lane);
        if (rc) {
            server_fail(s, "%s", fail_message());
            return;
        }
        send_row(s, row, PS_PARAMS, s->store->rows[row].params, DTYPE_F32,
                 s->store->rows[row].at.n * sizeof(float));
    }
    next_round(s);
}

// Which ranks are in the sum, as one bit for each rank. All servers must agree.
static size_t member_bits(const struct server *s, uint8_t *bits)
{
    const struct bsp *b = bsp_of(s);
    size_t bytes = ((size_t)s->job.world + 7) / 8;
    memset(bits, 0, bytes);
    for (int t = 0; t < b->need; t++)
        bits[b->rank_of[t] / 8] |= (uint8_t)(1 << b->rank_of[t] % 8);
    return bytes;
}

// Whether the worker with this place in the order adds the servers' sums of
// squares. Only the first worker does. In an elastic job all do, since a worker
// that dies may have answered some servers and not others.
static bool adds_norms(const struct server *s, int order)
{
    return order == 0 || (order > 0 && s->job.elastic);
}

static void finish_if_complete(struct server *s)
{
    struct bsp *b = bsp_of(s);
    if (b->waiting || b->need < 1 || b->complete < s->store->nrows ||
        b->stepped < b->need)
        return;
    if (s->job.worker_updates) {
        send_result(s, 0, false);
        next_round(s);
        return;
    }
    double squares = 0;
    for (int r = 0; r < s->store->nrows; r++)
        squares += b->rows[r].squares;
    if (s->job.servers == 1) {
        finish_round(s, squares);
        return;
    }
    uint8_t bits[PS_MAX_WORLD / 8];
    size_t bytes = member_bits(s, bits);
    struct ps_head h = bsp_answer(s, PS_NORM);
    h.value = squares;
    b->waiting = true;
    for (int t = 0; t < b->need && adds_norms(s, t); t++)
        server_send(s, b->rank_of[t], h, bits, bytes);
}

// ---- during a round

static void credit(struct server *s, int row, int order)
{
    struct ps_head h = bsp_answer(s, PS_CREDIT);
    h.row = (uint32_t)row;
    server_send(s, bsp_of(s)->rank_of[order], h, NULL, 0);
}

static void row_complete(struct server *s, int row, struct buffer *sum)
{
    bsp_of(s)->complete++;
    if (!sum)
        return; // kept for the update
    count_served(s, row_bytes(s, row));
    send_row(s, row, PS_GRADS, sum, s->job.wire, row_bytes(s, row));
    buffer_unref(sum);
}

// Compresses the sum of a row, and sends it.
static int answer_row(struct server *s, int row)
{
    enum ps_what what;
    size_t bytes;
    struct buffer *b = answers_take(s->answers, row, &what, &bytes);
    if (!b)
        return -1;
    bsp_of(s)->complete++;
    count_served(s, bytes);
    send_row(s, row, what, b, DTYPE_F32, bytes);
    buffer_unref(b);
    return 0;
}

// Adds the messages of a row that are due, in order.
static int add_messages(struct server *s, int row, uint64_t step)
{
    struct bsp *b = bsp_of(s);
    struct gather *g = &b->rows[row];
    const struct message *m;
    while ((m = gather_due(g, b->need))) {
        int order = g->added;
        if (order == 0)
            answers_begin(s->answers, row, step);
        if (answers_add(s->answers, row, m->data))
            return fail("the message of rank %d for row %d: %s",
                        b->rank_of[order], row, fail_message());
        gather_pass(g);
        credit(s, row, order);
    }
    return g->added == b->need ? answer_row(s, row) : 0;
}

static int take_message(struct server *s, int order, const struct ps_head *h,
                        struct message **p)
{
    int row = (int)h->row;
    span_begin(s->lane, SPAN_ADD, row);
    answers_keep(s->answers, row, h->value);
    gather_take(&bsp_of(s)->rows[row], order, *p);
    *p = NULL;
    int rc = add_messages(s, row, h->version);
    span_end(s->lane);
    return rc;
}

static int take_slice(struct server *s, int row, int order, struct message **p)
{
    struct bsp *b = bsp_of(s);
    struct gather *g = &b->rows[row];
    struct buffer *sum = NULL;
    int before = g->added;
    span_begin(s->lane, SPAN_ADD, row);
    gather_take(g, order, *p);
    *p = NULL;
    int rc = gather_add(g, s->store, b->need, s->store->rows[row].at.n, &sum);
    span_end(s->lane);
    if (rc)
        return -1;
    for (int t = before; t < g->added; t++)
        credit(s, row, t);
    if (g->added == b->need)
        row_complete(s, row, sum);
    return 0;
}

// Give a rank its place in the order, or check that it uses the place it has.
static int check_turn(struct server *s, int rank, const struct ps_head *h)
{
    struct bsp *b = bsp_of(s);
    if (s->job.backup && b->order_of[rank] < 0 &&
        h->order < (uint32_t)b->need && b->rank_of[h->order] < 0 &&
        s->job.index != 0) { // server 0 itself has assigned the places
        b->order_of[rank] = (int)h->order;
        b->rank_of[h->order] = rank;
    }
    if (b->order_of[rank] < 0 ||
        (s->job.backup && h->order != (uint32_t)b->order_of[rank]))
        return fail("%s for step %llu, to which rank %d does not belong",
                    ps_kind_name(h->kind), (unsigned long long)s->round, rank);
    return 0;
}

static int check_round(struct server *s, int rank, const struct ps_head *h)
{
    struct bsp *b = bsp_of(s);
    if (h->round != s->round)
        return fail("%s for step %llu, the present one is %llu",
                    ps_kind_name(h->kind), (unsigned long long)h->round,
                    (unsigned long long)s->round);
    b->active = true;
    bsp_check_left(s);
    b->heard_ns = now_ns();
    return check_turn(s, rank, h);
}

// Whether a slice, or a message in its place, is one that is due now.
static int check_push(const struct server *s, int order,
                      const struct ps_head *h)
{
    struct bsp *b = bsp_of(s);
    bool squeezed = h->what == PS_SQUEEZED && s->answers;
    if (h->row >= (uint32_t)s->store->nrows || h->dtype != s->job.wire ||
        (h->what != PS_GRADS && !squeezed) ||
        h->bytes != (squeezed ? answers_message(s->answers, (int)h->row)
                              : row_bytes(s, (int)h->row)))
        return fail("PUSH of row %u of %d, vector %d, %llu bytes of %s: not as "
                    "in HELLO",
                    h->row, s->store->nrows, (int)h->what,
                    (unsigned long long)h->bytes, dtype_name(h->dtype));
    struct gather *g = &b->rows[h->row];
    if (g->here[order])
        return fail("PUSH of row %u twice in step %llu", h->row,
                    (unsigned long long)s->round);
    if (g->come > 0 && g->what != h->what)
        return fail("PUSH of row %u of vector %d, and of %d by another worker",
                    h->row, (int)h->what, (int)g->what);
    g->what = h->what;
    return 0;
}

static int bsp_push(struct server *s, int rank, const struct ps_head *h,
                    struct message **p)
{
    struct bsp *b = bsp_of(s);
    if (bsp_outdated(s, h))
        return 0; // from before the round was restarted
    if (check_round(s, rank, h))
        return -1;
    if (check_push(s, b->order_of[rank], h))
        return -1;
    if (!server_beside(s, rank))
        s->served_in += h->bytes;
    if (h->what == PS_SQUEEZED
            ? take_message(s, b->order_of[rank], h, p)
            : take_slice(s, (int)h->row, b->order_of[rank], p)) {
        server_fail(s, "%s", fail_message());
        return 0;
    }
    finish_if_complete(s);
    return 0;
}

static bool same_step(const struct ps_step *a, const struct ps_step *b)
{
    return a->step == b->step && a->lr == b->lr &&
           a->grad_scale == b->grad_scale && a->clip == b->clip;
}

static int bsp_step(struct server *s, int rank, const struct ps_head *h)
{
    struct bsp *b = bsp_of(s);
    struct peer *p = &s->peers[rank];
    if (bsp_outdated(s, h))
        return 0;
    if (check_round(s, rank, h))
        return -1;
    if (p->stepped)
        return fail("STEP twice in step %llu", (unsigned long long)s->round);
    // workers that were dropped or have joined count their own steps
    bool strict = !s->job.backup && !s->job.elastic;
    for (int r = 0; strict && r < s->job.world; r++)
        if (s->peers[r].stepped && !same_step(&s->peers[r].step, &p->step))
            return fail("rank %d is at step %u with lr %g, rank %d at step %u "
                        "with lr %g",
                        rank, p->step.step, (double)p->step.lr, r,
                        s->peers[r].step.step, (double)s->peers[r].step.lr);
    p->stepped = true;
    b->stepped++;
    finish_if_complete(s);
    return 0;
}

static int bsp_commit(struct server *s, int rank, const struct ps_head *h)
{
    struct bsp *b = bsp_of(s);
    if (s->job.elastic && (h->round < s->round || bsp_outdated(s, h)))
        return 0; // another worker's COMMIT came first
    if (h->round != s->round || !b->waiting ||
        !adds_norms(s, b->order_of[rank]))
        return fail("COMMIT of step %llu, the present one is %llu",
                    (unsigned long long)h->round, (unsigned long long)s->round);
    finish_round(s, h->value);
    return 0;
}

const struct policy policy_bsp = {
    .open = bsp_open,
    .close = bsp_close,
    .begin = bsp_begin,
    .welcome = bsp_welcome,
    .push = bsp_push,
    .step = bsp_step,
    .commit = bsp_commit,
    .claim = bsp_claim,
    .drop = bsp_drop,
    .join = bsp_join,
    .lost = bsp_lost,
    .left = bsp_left,
    .tick = bsp_tick,
};
