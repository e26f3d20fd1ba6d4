// async.c - what a server does under ssp and asp: every push is an update.
//
// A server updates a row when its gradient arrives, and answers with the newest
// parameters: under asp at once, under ssp:K as soon as no worker is more than
// K steps behind. (Ho et al., NIPS 2013, and Li et al., OSDI 2014.)
//
// The server counts, for each worker:
//
//     pushed   the pushes that it has received completely, with all rows
//     clock    how many of these pushes it has answered
//
// A worker's clock becomes c only when every other worker has pushed c - K
// times. Another worker may have pushed that often and still wait for an
// answer; then it gets its answer at the same moment. So the clocks never
// differ by more than K.

#include "ps_server/server.h"

#include "base/base.h"
#include "device/vector.h"
#include "telemetry/span.h"

#include <string.h>

enum { GIVEN = 1, OWED = 2 };

// The steps that a worker skipped, by their clock.
struct skips {
    uint64_t *clock;
    size_t n, room;
};

struct async {
    float *wide;   // a row of a 16-bit wire, cast up
    uint64_t base; // updates made before this job began
    uint64_t most; // the largest clock that a worker has ever reached
    bool based;
    struct skips *skips; // by rank
};

static int async_open(struct server *s)
{
    struct async *a = s->state = mem_alloc(1, sizeof *a);
    if (!a)
        return -1;
    a->wide = mem_alloc(s->job.slice, sizeof *a->wide);
    a->skips = mem_alloc((size_t)s->job.world, sizeof *a->skips);
    for (int r = 0; r < s->job.world; r++) {
        s->peers[r].row_state = mem_alloc((size_t)s->store->nrows + 1, 1);
        if (!s->peers[r].row_state)
            return -1;
    }
    return a->wide && a->skips ? 0 : -1;
}

static void async_close(struct server *s)
{
    struct async *a = s->state;
    if (!a)
        return;
    for (int r = 0; r < s->job.world; r++)
        mem_free(s->peers[r].row_state);
    for (int r = 0; a->skips && r < s->job.world; r++)
        mem_free(a->skips[r].clock);
    mem_free(a->skips);
    mem_free(a->wide);
    mem_free(a);
    s->state = NULL;
}

// The pushes of the slowest worker other than `rank`; UINT64_MAX if there is
// none.
static uint64_t slowest_other(const struct server *s, int rank)
{
    uint64_t least = UINT64_MAX;
    for (int r = 0; r < s->job.world; r++)
        if (r != rank && s->peers[r].alive && s->peers[r].pushed < least)
            least = s->peers[r].pushed;
    return least;
}

static bool may_go_on(const struct server *s, int rank)
{
    const struct peer *p = &s->peers[rank];
    uint64_t next = p->pushed + p->pushing, bound = (uint64_t)s->job.bound;
    if (s->job.consistency == CONSISTENCY_ASP || next <= bound)
        return true;
    return slowest_other(s, rank) >= next - bound;
}

static void answer_row(struct server *s, int rank, int row)
{
    struct row *r = &s->store->rows[row];
    struct ps_head h = {
        .kind = PS_SLICE,
        .what = PS_PARAMS,
        .row = (uint32_t)row,
        .version = r->version,
    };
    size_t bytes = r->at.n * sizeof(float);
    if (!server_beside(s, rank))
        s->served_out += bytes;
    s->peers[rank].row_state[row] &= (uint8_t)~OWED;
    s->peers[rank].owed--;
    span_begin(s->lane, SPAN_SEND, row);
    server_send_buffer(s, rank, h, r->params, bytes);
    span_end(s->lane);
}

// Send every answer that the pushes so far allow.
static void answer_all(struct server *s)
{
    for (int r = 0; r < s->job.world; r++) {
        struct peer *p = &s->peers[r];
        if (!p->alive || (p->clock == p->pushed && !p->owed) ||
            !may_go_on(s, r))
            continue;
        for (int row = 0; p->owed && row < s->store->nrows; row++)
            if (p->row_state[row] & OWED)
                answer_row(s, r, row);
        if (p->clock < p->pushed) {
            p->clock = p->pushed;
            server_send_result(s, r, (struct ps_head){.kind = PS_RESULT},
                               (struct ps_result){.skipped = p->step.skip,
                                                  .lag = p->lag});
        }
    }
}

static void push_complete(struct server *s, int rank)
{
    struct async *a = s->state;
    struct peer *p = &s->peers[rank];
    p->pushing = false;
    p->pushed++;
    a->most = p->pushed > a->most ? p->pushed : a->most;
    s->used += !p->step.skip;
    span_count(s->lane, COUNTER_LAG, p->lag);
    span_count(s->lane, COUNTER_BYTES, (double)(s->served_out + s->served_in));
    p->since_ns = now_ns();
    answer_all(s);
}

static int note_skip(struct skips *k, uint64_t clock)
{
    if (k->n == k->room) {
        size_t room = 2 * k->room + 16;
        uint64_t *more = mem_alloc(room, sizeof *more);
        if (!more)
            return -1;
        if (k->n)
            memcpy(more, k->clock, k->n * sizeof *more);
        mem_free(k->clock);
        k->clock = more;
        k->room = room;
    }
    k->clock[k->n++] = clock;
    return 0;
}

static int async_step(struct server *s, int rank, const struct ps_head *h)
{
    struct async *a = s->state;
    struct peer *p = &s->peers[rank];
    (void)h;
    if (p->pushing || p->clock != p->pushed)
        return fail("STEP before the last one was answered");
    if (!a->based) {
        a->base = p->step.step - 1;
        a->based = true;
    }
    p->pushing = true;
    p->given = 0;
    p->lag = 0;
    memset(p->row_state, 0, (size_t)s->store->nrows);
    if (p->step.skip && note_skip(&a->skips[rank], p->pushed + 1))
        return -1;
    if (p->step.skip || s->store->nrows == 0)
        push_complete(s, rank);
    return 0;
}

static int check_push(const struct server *s, int rank, const struct ps_head *h)
{
    const struct peer *p = &s->peers[rank];
    if (!p->pushing)
        return fail("PUSH without a STEP");
    if (h->row >= (uint32_t)s->store->nrows || h->dtype != s->job.wire ||
        h->bytes != s->store->rows[h->row].at.n * dtype_bytes(s->job.wire))
        return fail("PUSH of row %u of %d, %llu bytes of %s: not as in HELLO",
                    h->row, s->store->nrows, (unsigned long long)h->bytes,
                    dtype_name(h->dtype));
    if (p->row_state[h->row] & GIVEN)
        return fail("PUSH of row %u twice", h->row);
    if (h->version > s->store->rows[h->row].version)
        return fail("PUSH of row %u at version %llu, which is in the future",
                    h->row, (unsigned long long)h->version);
    return 0;
}

static int async_push(struct server *s, int rank, const struct ps_head *h,
                      struct message **data)
{
    struct async *a = s->state;
    struct peer *p = &s->peers[rank];
    if (check_push(s, rank, h))
        return -1;
    int row = (int)h->row;
    struct row *r = &s->store->rows[row];
    uint64_t lag = r->version - h->version;
    if (lag > p->lag)
        p->lag = (uint32_t)(lag < INT32_MAX ? lag : INT32_MAX);
    const float *grads = (*data)->data;
    if (s->job.wire != DTYPE_F32) {
        vector_cast(a->wide, DTYPE_F32, grads, s->job.wire, r->at.n);
        grads = a->wide;
    }
    uint64_t step = a->base + r->version + 1;
    span_begin(s->lane, SPAN_UPDATE, row);
    int rc = store_update(s->store, row, grads,
                          (int)(step < INT32_MAX ? step : INT32_MAX),
                          p->step.lr, p->step.grad_scale);
    span_end(s->lane);
    if (rc) {
        server_fail(s, "%s", fail_message());
        return 0;
    }
    if (!server_beside(s, rank))
        s->served_in += h->bytes;
    struct ps_head credit = {.kind = PS_CREDIT, .row = h->row};
    server_send(s, rank, credit, NULL, 0);
    p->row_state[row] = GIVEN | OWED;
    p->owed++;
    if (++p->given == s->store->nrows)
        push_complete(s, rank);
    else if (may_go_on(s, rank))
        answer_row(s, rank, row);
    return 0;
}

// A worker that joins begins at the clock of the slowest one. If all are dead,
// it goes on where the job was. It is told how many steps up to there were
// updates; those that it missed count as such. From now on the others wait for
// it at their end: its first gradient may come after their last ones.
static void async_welcome(struct server *s, int rank, struct ps_head *h)
{
    const struct async *a = s->state;
    struct peer *p = &s->peers[rank];
    uint64_t least = slowest_other(s, rank);
    struct skips *k = &a->skips[rank];
    p->pushed = p->clock = least == UINT64_MAX ? a->most : least;
    while (k->n && k->clock[k->n - 1] > p->clock) // it does that step again
        k->n--;
    log_line("server %d: worker rank %d joins at clock %llu", s->job.index,
             rank, (unsigned long long)p->clock);
    rendezvous_back(s->rendezvous, rank);
    h->round = p->clock + 1;
    h->value = (double)(p->clock - k->n);
}

static void async_gone(struct server *s, int rank)
{
    s->peers[rank].pushing = false;
    s->peers[rank].owed = 0;
    answer_all(s);
}

// ssp: drops a worker for which others have waited longer than the deadline.
static void async_tick(struct server *s)
{
    uint64_t now = now_ns(), most = server_patience_ns(s);
    for (int r = 0; r < s->job.world; r++) {
        const struct peer *p = &s->peers[r];
        if (!p->alive || p->clock == p->pushed || now - p->since_ns < most)
            continue;
        uint64_t least = slowest_other(s, r);
        for (int o = 0; o < s->job.world; o++) {
            char why[160];
            if (o == r || !s->peers[o].alive || s->peers[o].pushed != least ||
                server_is_busy(s, o))
                continue;
            snprintf(why, sizeof why,
                     "it is at clock %llu and rank %d, at %llu, has waited for "
                     "%.3g s",
                     (unsigned long long)least, r,
                     (unsigned long long)p->pushed, s->job.timeout_s);
            server_lost(s, o, why);
            return;
        }
    }
}

const struct policy policy_async = {
    .open = async_open,
    .close = async_close,
    .welcome = async_welcome,
    .push = async_push,
    .step = async_step,
    .lost = async_gone,
    .left = async_gone,
    .tick = async_tick,
};
