// task.c - the messages that a client sends and receives in each task.
//
// A task is the same for all servers, but each server proceeds at its own pace.

#include "ps_worker/client.h"

#include "base/base.h"
#include "device/vector.h"
#include "squeeze/squeeze.h"

#include <string.h>

static struct ps_head question(const struct client *c, const struct remote *r,
                               enum ps_kind kind)
{
    return (struct ps_head){
        .kind = kind,
        .round = c->round,
        .epoch = r->epoch,
        .order = c->order,
    };
}

// Nothing of the task is sent or received yet.
static void begin_anew(const struct client *c, struct remote *r)
{
    r->next = r->acked = r->got = 0;
    r->credit = ps_window(c->job.world);
    r->told = r->settled = r->normed = false;
}

void task_begin(struct client *c)
{
    c->claimed = c->admitted = false;
    if (c->current == TASK_ROUND) {
        c->dropped = false;
        c->result = (struct ps_result){0};
    }
    for (int i = 0; i < c->nremotes; i++)
        begin_anew(c, &c->remotes[i]);
}

// ---- sending

static int send_hello(struct client *c, struct remote *r)
{
    uint8_t raw[PS_JOB_BYTES];
    c->job.index = (int)(r - c->remotes);
    size_t bytes = ps_job_put(raw, &c->job);
    r->told = true;
    return client_send(c, r, question(c, r, PS_HELLO), raw, bytes);
}

static int send_sets(struct client *c, struct remote *r)
{
    while (r->next < r->rows && r->credit > 0) {
        struct ps_head h = question(c, r, PS_SET);
        h.what = c->what;
        h.row = (uint32_t)r->next++;
        r->credit--;
        if (client_send_row(c, r, h, c->vector, DTYPE_F32))
            return -1;
    }
    return 0;
}

static int send_pull(struct client *c, struct remote *r)
{
    struct ps_head h = question(c, r, PS_PULL);
    h.what = c->what;
    h.round = c->sets;
    h.version = c->version;
    h.value = (double)c->updates;
    r->told = true;
    return r->rows ? client_send(c, r, h, NULL, 0) : 0;
}

// Asks for the server's time CLIENT_CLOCKS times, or once if the server reads
// the same clock. Then sends the server the zero of time, by the server's
// clock.
static int send_clock(struct client *c, struct remote *r)
{
    struct ps_head h = question(c, r, PS_CLOCK);
    struct align a = {0};
    r->told = true;
    if (r->clocks == CLIENT_CLOCKS) {
        if (!r->same_clock &&
            align_clocks(r->answered, r->asked, CLIENT_CLOCKS, &a))
            return -1;
        h.version = c->zero_ns + (uint64_t)a.offset_ns;
        r->settled = true;
    } else {
        r->asked[r->clocks].entered_ns = now_ns();
    }
    return client_send(c, r, h, NULL, 0);
}

static int send_step(struct client *c, struct remote *r)
{
    uint8_t raw[PS_STEP_BYTES];
    ps_step_put(raw, &c->step);
    r->told = true;
    return client_send(c, r, question(c, r, PS_STEP), raw, sizeof raw);
}

static int send_rows(struct client *c, struct remote *r)
{
    while (r->next < r->rows && r->credit > 0 &&
           shard_slice(&r->shard, r->next).off >= c->ready) {
        struct ps_head h = question(c, r, PS_PUSH);
        h.what = PS_GRADS;
        h.row = (uint32_t)r->next;
        h.version = r->version[r->next++];
        r->credit--;
        if (c->squeezes ? client_send_message(c, r, h)
                        : client_send_row(c, r, h, c->grads, c->job.wire))
            return -1;
    }
    return 0;
}

// With backup workers a worker pushes nothing before server 0 has said that its
// gradient is needed.
static int send_round(struct client *c, struct remote *r)
{
    if (c->job.backup && !c->admitted) {
        if (c->claimed || !c->stepping)
            return 0;
        c->claimed = true;
        return client_send(c, c->remotes, question(c, c->remotes, PS_CLAIM),
                           NULL, 0);
    }
    if (c->stepping && !r->told && send_step(c, r))
        return -1;
    if (c->stepping && c->step.skip)
        return 0;
    return send_rows(c, r);
}

// Each worker begins with a different server. Otherwise all workers would fill
// the same link at the same time.
int task_send(struct client *c)
{
    for (int k = 0; k < c->nremotes; k++) {
        struct remote *r = &c->remotes[(c->job.rank + k) % c->nremotes];
        int rc = 0;
        if (c->current == TASK_HELLO && !r->told)
            rc = send_hello(c, r);
        else if (c->current == TASK_SET)
            rc = send_sets(c, r);
        else if (c->current == TASK_PULL && !r->told)
            rc = send_pull(c, r);
        else if (c->current == TASK_CLOCK && !r->told)
            rc = send_clock(c, r);
        else if (c->current == TASK_ROUND)
            rc = send_round(c, r);
        if (rc)
            return -1;
    }
    return 0;
}

static bool remote_done(const struct client *c, const struct remote *r)
{
    switch (c->current) {
    case TASK_HELLO:
        return r->welcome;
    case TASK_SET:
        return r->acked == r->rows;
    case TASK_PULL:
        return r->got == r->rows;
    case TASK_CLOCK:
        return r->settled;
    default:
        return r->settled && r->got == r->rows;
    }
}

bool task_done(const struct client *c)
{
    for (int i = 0; i < c->nremotes; i++)
        if (!remote_done(c, &c->remotes[i]))
            return false;
    return true;
}

// ---- receiving

// The group is already running. Asks all servers to count this worker in,
// beginning with a round that none of them has begun.
static int ask_to_join(struct client *c)
{
    for (int i = 0; i < c->nremotes; i++)
        if (c->remotes[i].earliest > c->join)
            c->join = c->remotes[i].earliest;
    for (int i = 0; i < c->nremotes; i++) {
        struct remote *r = &c->remotes[i];
        struct ps_head h = question(c, r, PS_JOIN);
        h.round = c->join;
        r->welcome = false;
        if (client_send(c, r, h, NULL, 0))
            return -1;
    }
    return 0;
}

static int hear_welcome(struct client *c, struct remote *r,
                        const struct ps_head *h)
{
    r->welcome = true;
    r->epoch = h->epoch;
    r->earliest = h->round;
    r->late = h->version > 0;
    if (r->late && !(h->value >= 0 && h->value < (double)h->round))
        return fail("WELCOME to round %llu after %g updates",
                    (unsigned long long)h->round, h->value);
    r->updates = (uint64_t)h->value;
    for (int i = 0; i < c->nremotes; i++)
        c->late |= c->remotes[i].late;
    if (!task_done(c) || !c->late)
        return 0; // other servers have not answered, or the job only begins
    c->round = 1;
    for (int i = 0; i < c->nremotes; i++) {
        uint64_t earliest = c->remotes[i].earliest;
        if (c->job.consistency == CONSISTENCY_BSP && earliest != c->join)
            return ask_to_join(c);
        if (earliest > c->round) {
            c->round = earliest;
            c->joined_updates = c->remotes[i].updates;
        }
    }
    return 0;
}

// The vector whose rows answer the present task.
static enum ps_what asked_for(const struct client *c)
{
    return c->current == TASK_PULL ? c->what
           : c->job.worker_updates ? PS_GRADS
                                   : PS_PARAMS;
}

static void note_used(struct client *c, double used)
{
    if (used > (double)c->used && used < 0x1p53)
        c->used = (uint64_t)used;
}

// The answer to our message: the sum, compressed again or the union of all
// entries.
static int hear_message(const struct client *c, const struct slice *at,
                        const struct ps_head *h, const void *data)
{
    const struct sync_settings *set = &c->job.squeeze;
    float *to = c->grads + at->off;
    memset(to, 0, at->n * sizeof *to);
    if (!c->squeeze->twice)
        return squeeze_add_union(data, h->bytes, at->n, to);
    if (h->bytes != c->squeeze->bytes(set, at->n))
        return fail("%llu bytes instead of %zu", (unsigned long long)h->bytes,
                    c->squeeze->bytes(set, at->n));
    return c->squeeze->add(set, data, at->n, to);
}

static int hear_slice(struct client *c, struct remote *r,
                      const struct ps_head *h, const void *data)
{
    if (h->row >= (uint32_t)r->rows)
        return fail("SLICE of row %u of %d", h->row, r->rows);
    struct slice at = shard_slice(&r->shard, (int)h->row);
    float *to = c->current == TASK_PULL ? c->vector
                : h->what == PS_GRADS   ? c->grads
                                        : c->params;
    bool squeezed = h->what == PS_SQUEEZED && c->squeezes &&
                    c->current == TASK_ROUND && h->dtype == DTYPE_F32;
    bool whole =
        h->what == asked_for(c) && h->bytes == at.n * dtype_bytes(h->dtype);
    if ((c->current != TASK_PULL && c->current != TASK_ROUND) ||
        (!whole && !squeezed) || r->got == r->rows)
        return fail("SLICE of row %u of vector %d out of order, %llu bytes",
                    h->row, (int)h->what, (unsigned long long)h->bytes);
    if (c->current == TASK_PULL)
        note_used(c, h->value);
    r->got++;
    r->version[h->row] = h->version;
    if (squeezed && hear_message(c, &at, h, data))
        return fail("SLICE of row %u: %s", h->row, fail_message());
    if (!squeezed)
        vector_cast(to + at.off, DTYPE_F32, data, h->dtype, at.n);
    return 0;
}

static int hear_clock(const struct client *c, struct remote *r,
                      const struct ps_head *h)
{
    if (c->current != TASK_CLOCK || r->clocks == CLIENT_CLOCKS)
        return fail("CLOCK out of order");
    r->asked[r->clocks].left_ns = now_ns();
    r->answered[r->clocks++] = (struct align_round){h->version, h->version};
    r->same_clock = h->round && h->round == align_host();
    if (r->same_clock)
        r->clocks = CLIENT_CLOCKS;
    r->told = false;
    return 0;
}

static int hear_result(struct client *c, struct remote *r,
                       const struct ps_head *h, const void *data)
{
    struct ps_result result;
    if (ps_result_get(&result, data, h->bytes))
        return -1;
    if (c->current != TASK_ROUND || r->settled)
        return fail("RESULT out of order");
    if (r->beside) { // this server's other traffic crosses our host's link
        c->stats.bytes_out += result.served_out - r->served_out;
        c->stats.bytes_in += result.served_in - r->served_in;
        r->served_out = result.served_out;
        r->served_in = result.served_in;
    }
    if (r == c->remotes && h->order < (uint32_t)c->job.world)
        c->lowest = (int)h->order;
    r->settled = true;
    if (result.skipped)
        r->got = r->rows;
    // the norm is the same everywhere; the lag is the largest
    if (c->result.lag > result.lag)
        result.lag = c->result.lag;
    c->used = result.used > c->used ? result.used : c->used;
    c->result = result;
    return 0;
}

// Whether a server has added the gradient of a rank.
static bool has_added(const struct remote *r, int rank)
{
    return r->members[rank / 8] >> rank % 8 & 1;
}

// All servers must have added the gradients of the same workers. If a server
// has added the gradient of a worker that another server lacks, asks that
// server to leave the worker out. *agree becomes whether none had to be asked.
static int settle_members(struct client *c, bool *agree)
{
    *agree = true;
    for (int rank = 0; rank < c->job.world; rank++) {
        bool common = true;
        for (int i = 0; i < c->nremotes; i++)
            common &= has_added(&c->remotes[i], rank);
        for (int i = 0; !common && i < c->nremotes; i++) {
            struct remote *r = &c->remotes[i];
            struct ps_head h = question(c, r, PS_DROP);
            if (!has_added(r, rank))
                continue;
            h.order = (uint32_t)rank;
            *agree = false;
            if (client_send(c, r, h, NULL, 0))
                return -1;
        }
    }
    return 0;
}

static int hear_norm(struct client *c, struct remote *r,
                     const struct ps_head *h, const void *data)
{
    if (c->current != TASK_ROUND || h->bytes > sizeof r->members ||
        h->bytes != ((size_t)c->job.world + 7) / 8)
        return fail("NORM out of order");
    r->normed = true;
    r->squares = h->value;
    memcpy(r->members, data, h->bytes);
    double squares = 0;
    for (int i = 0; i < c->nremotes; i++) {
        if (!c->remotes[i].normed)
            return 0;
        squares += c->remotes[i].squares;
    }
    bool agree;
    if (settle_members(c, &agree))
        return -1;
    for (int i = 0; agree && i < c->nremotes; i++) {
        struct ps_head commit = question(c, &c->remotes[i], PS_COMMIT);
        commit.value = squares;
        if (client_send(c, &c->remotes[i], commit, NULL, 0))
            return -1;
    }
    return 0;
}

// The server restarts a round: so do we with this server, if we are in that
// round. Between two rounds c->round is the next one, in which nothing has been
// sent yet; the present task has nothing to do with it.
static int hear_again(const struct client *c, struct remote *r,
                      const struct ps_head *h)
{
    r->epoch = h->epoch;
    if (c->current == TASK_ROUND && h->round == c->round)
        begin_anew(c, r);
    return 0;
}

// The answer to CLAIM: ADMIT, or LATE with the last round that has ended.
static int hear_turn(struct client *c, const struct remote *r,
                     const struct ps_head *h)
{
    bool late = h->kind == PS_LATE;
    if (c->current != TASK_ROUND || r != c->remotes || !c->claimed ||
        c->admitted || (late && h->version < c->round))
        return fail("%s out of order", ps_kind_name(h->kind));
    if (!late) {
        c->admitted = true;
        c->order = h->order;
        return 0;
    }
    c->dropped = true;
    c->current = c->task = TASK_PULL;
    task_begin(c);
    c->what = PS_PARAMS;
    c->vector = c->params;
    c->sets = 0;
    c->version = h->version;
    c->round = h->version; // client_round() adds one
    return 0;
}

int task_receive(struct client *c, struct remote *r, const struct ps_head *h,
                 const void *data)
{
    switch (h->kind) {
    case PS_WELCOME:
    case PS_LATER:
        return hear_welcome(c, r, h);
    case PS_CREDIT:
        r->credit++;
        r->acked++;
        return 0;
    case PS_SLICE:
        return hear_slice(c, r, h, data);
    case PS_RESULT:
        return hear_result(c, r, h, data);
    case PS_NORM:
        return hear_norm(c, r, h, data);
    case PS_ADMIT:
    case PS_LATE:
        return hear_turn(c, r, h);
    case PS_AGAIN:
        return hear_again(c, r, h);
    case PS_CLOCK:
        return hear_clock(c, r, h);
    default:
        return fail("%s is not for workers", ps_kind_name(h->kind));
    }
}
