// client.c - the poll steps of a client, and which thread runs them.

#include "ps_worker/client.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "squeeze/squeeze.h"
#include "telemetry/span.h"

#include <string.h>

enum { POLL_MS = 50 }; // between checks of the deadline

// ---- receiving

static int hear(struct client *c, struct remote *r, const struct message *p)
{
    struct ps_head h = {0};
    if (!p->head)
        return fail("a message of too few or too many frames");
    if (ps_head_get(&h, p->head, p->head_bytes))
        return -1;
    if (h.bytes != p->bytes)
        return fail("%zu bytes came instead of %llu", p->bytes,
                    (unsigned long long)h.bytes);
    if (!r->beside) {
        bool row = h.kind == PS_SLICE;
        c->stats.head_in += PS_HEAD + (row ? 0 : p->bytes);
        c->stats.bytes_in += row ? p->bytes : 0;
    }
    if (h.kind == PS_PING)
        return 0;
    c->heard_ns = now_ns();
    if (h.kind == PS_BUSY)
        return 0; // another worker is
    if (h.kind == PS_ERROR)
        return fail("%.*s", (int)p->bytes, (const char *)p->data);
    return task_receive(c, r, &h, p->data);
}

// Whether the task for which the trainer waits is complete. A message after
// that, even one that ends the job, belongs to the next task.
static bool is_over(const struct client *c)
{
    return c->waiting && task_done(c);
}

static int receive_all(struct client *c)
{
    struct message *p;
    while (!is_over(c) && (p = endpoint_receive(c->endpoint))) {
        struct remote *r = &c->remotes[p->server];
        int rc = hear(c, r, p);
        message_drop(p);
        if (rc)
            return fail("server %s: %s", r->endpoint, fail_message());
    }
    return 0;
}

// Handle all messages that have come, and only then report that a connection
// is gone: the last messages may say why.
static int take_in(struct client *c)
{
    char why[512];
    if (receive_all(c))
        return -1;
    if (is_over(c) || !endpoint_check(c->endpoint))
        return 0;
    snprintf(why, sizeof why, "%s", fail_message());
    return receive_all(c) ? -1 : fail("%s", why); // a message may say why
}

// ---- while the trainer is away

// The time from one idle step to the next, far below the deadline.
static uint64_t pause_ns(const struct client *c)
{
    const double most_s = 1;
    double s = c->job.timeout_s / 4;
    return (uint64_t)(1e9 * (s < most_s ? s : most_s));
}

// Tells all servers that the trainer is busy, if it is, and if it is time to.
static int say_busy(struct client *c)
{
    uint64_t now = now_ns();
    if (!c->busy || now - c->busy_ns < pause_ns(c))
        return 0;
    c->busy_ns = now;
    for (int i = 0; i < c->nremotes; i++)
        if (client_send(c, &c->remotes[i], (struct ps_head){.kind = PS_BUSY},
                        NULL, 0))
            return -1;
    return 0;
}

// Between tasks: servers ask now and then whether we are still there. If nobody
// read these messages, they would fill the queue, and ZeroMQ would no longer
// answer for us.
static int idle_step(struct client *c)
{
    if (say_busy(c))
        return -1;
    endpoint_wait(c->endpoint, 0);
    return take_in(c);
}

// Waits until something has changed, or it is time for the next idle step.
static void await_change(struct client *c)
{
    struct timespec until;
    uint64_t at = now_ns() + pause_ns(c);
    until.tv_sec = (time_t)(at / 1000000000u);
    until.tv_nsec = (long)(at % 1000000000u);
    pthread_cond_timedwait(&c->changed, &c->lock, &until);
}

// ---- poll steps

static int check_deadline(struct client *c)
{
    double waited = (double)(now_ns() - c->heard_ns) * 1e-9;
    if (!c->waiting || waited < c->job.timeout_s)
        return 0;
    for (int i = 0; i < c->nremotes; i++) {
        const struct remote *r = &c->remotes[i];
        if (c->current == TASK_HELLO && !r->welcome)
            return fail("server %s: %s within %.3g s; try: check that it and "
                        "all workers are running",
                        r->endpoint,
                        endpoint_is_up(c->endpoint, i) ? "no welcome"
                                                       : "no answer",
                        c->job.timeout_s);
        if (c->current != TASK_HELLO && (r->got < r->rows || !r->settled))
            return fail("server %s: no answer within %.3g s (step %llu, row %d "
                        "of %d)",
                        r->endpoint, c->job.timeout_s,
                        (unsigned long long)c->round, r->got, r->rows);
    }
    return fail("servers: no answer within %.3g s", c->job.timeout_s);
}

static int rows_sent(const struct client *c)
{
    int rows = 0;
    for (int i = 0; i < c->nremotes; i++)
        rows += c->remotes[i].next;
    return rows;
}

static int send_some(struct client *c)
{
    int before = rows_sent(c);
    bool round = c->current == TASK_ROUND;
    uint64_t begin = now_ns(), bytes = c->stats.bytes_out;
    int rc = task_send(c);
    if (rows_sent(c) != before) {
        span_carries(c->lane, c->stats.bytes_out - bytes);
        span_add(c->lane, SPAN_SEND, round ? (int)c->round : -1, begin,
                 now_ns());
    }
    return rc;
}

static void begin_task(struct client *c)
{
    if (c->task == c->current)
        return;
    c->current = c->task;
    c->heard_ns = now_ns();
    task_begin(c);
}

// A poll step: it ends the task, or waits once for messages and handles them.
// The caller holds the lock; the wait releases it.
static int poll_step(struct client *c)
{
    begin_task(c);
    if (say_busy(c) || send_some(c))
        return -1;
    // a round ends only when the trainer waits for it
    if (is_over(c)) {
        c->task = c->current = TASK_NONE;
        c->waiting = false;
        return 0;
    }
    // during a round, this wait counts as receiving
    bool moving = c->current == TASK_ROUND;
    if (moving)
        span_begin(c->lane, SPAN_RECEIVE, (int)c->round);
    pthread_mutex_unlock(&c->lock);
    endpoint_wait(c->endpoint, POLL_MS);
    pthread_mutex_lock(&c->lock);
    uint64_t bytes = c->stats.bytes_in;
    int rc = take_in(c);
    if (moving) {
        span_carries(c->lane, c->stats.bytes_in - bytes);
        span_end(c->lane);
    }
    return rc ? -1 : check_deadline(c);
}

static int note_failure(struct client *c)
{
    c->failed = true;
    snprintf(c->why, sizeof c->why, "%s", fail_message());
    return -1;
}

// The thread: runs poll steps while the trainer computes, and idle steps when
// there is nothing to do.
static void *run(void *arg)
{
    struct client *c = arg;
    pthread_mutex_lock(&c->lock);
    while (!c->stop) {
        bool mine = !c->failed && !c->waiting;
        if (!mine || c->task != TASK_ROUND) {
            if (mine && idle_step(c))
                note_failure(c);
            await_change(c);
            continue;
        }
        c->inside = true;
        if (poll_step(c))
            note_failure(c);
        c->inside = false;
        if (c->waiting)
            pthread_cond_signal(&c->changed);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

// Run `task` to its end. Called with the lock held.
static int run_task(struct client *c, enum task task)
{
    c->waiting = true;
    c->heard_ns = now_ns();
    if (c->inside)
        endpoint_wake(c->endpoint);
    while (c->inside)
        pthread_cond_wait(&c->changed, &c->lock);
    if (c->failed)
        return fail("%s", c->why);
    c->task = task;
    while (c->waiting)
        if (poll_step(c))
            return note_failure(c);
    return 0;
}

// If the thread is not in a poll step, the trainer itself sends what is ready.
// Otherwise it wakes the thread, except after the last bucket, when the trainer
// is about to run the poll steps itself.
int client_ready(struct client *c, size_t off)
{
    pthread_mutex_lock(&c->lock);
    c->ready = off;
    c->task = TASK_ROUND;
    int rc = c->failed ? fail("%s", c->why) : 0;
    if (!rc && c->inside && off > 0) {
        endpoint_wake(c->endpoint);
    } else if (!rc && !c->inside) {
        begin_task(c);
        rc = send_some(c) ? note_failure(c) : 0;
        if (off > 0)
            pthread_cond_signal(&c->changed);
    }
    pthread_mutex_unlock(&c->lock);
    return rc;
}

int client_round(struct client *c, const struct ps_step *step)
{
    pthread_mutex_lock(&c->lock);
    c->ready = 0;
    c->step = *step;
    c->stepping = true;
    uint64_t began = c->round;
    int rc = run_task(c, TASK_ROUND);
    c->missed = c->round - began;
    c->round++;
    c->stepping = false;
    c->ready = SIZE_MAX;
    pthread_mutex_unlock(&c->lock);
    return rc;
}

// The caller has locked the client, and set the members of the task.
static int run_and_unlock(struct client *c, enum task task)
{
    int rc = run_task(c, task);
    pthread_mutex_unlock(&c->lock);
    return rc;
}

int client_set(struct client *c, enum ps_what what, const float *vector)
{
    pthread_mutex_lock(&c->lock);
    c->what = what;
    c->vector = (float *)(uintptr_t)vector; // only read
    return run_and_unlock(c, TASK_SET);
}

int client_pull(struct client *c, enum ps_what what, float *vector,
                uint64_t sets, uint64_t version)
{
    pthread_mutex_lock(&c->lock);
    c->what = what;
    c->vector = vector;
    c->sets = sets;
    c->version = version;
    return run_and_unlock(c, TASK_PULL);
}

int client_clock(struct client *c, uint64_t zero_ns)
{
    pthread_mutex_lock(&c->lock);
    c->zero_ns = zero_ns;
    return run_and_unlock(c, TASK_CLOCK);
}

static void set_busy(struct client *c, bool busy)
{
    pthread_mutex_lock(&c->lock);
    c->busy = busy;
    pthread_cond_signal(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

int client_work(struct client *c, int (*work)(void *ctx), void *ctx)
{
    set_busy(c, true);
    int rc = work(ctx);
    set_busy(c, false);
    return rc;
}

void client_stats(struct client *c, struct group_stats *stats)
{
    pthread_mutex_lock(&c->lock);
    *stats = c->stats;
    pthread_mutex_unlock(&c->lock);
}

// ---- open and close

// now_ns() is the monotonic clock.
static void open_lock(struct client *c)
{
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&c->changed, &clock);
    pthread_condattr_destroy(&clock);
    pthread_mutex_init(&c->lock, NULL);
}

static int open_remote(struct client *c, struct remote *r, int index,
                       const char *endpoint)
{
    r->beside = c->job.beside && index == c->job.rank;
    if (shard_make(&r->shard, c->job.n, c->job.slice, c->job.servers, index))
        return -1;
    r->rows = shard_rows(&r->shard);
    r->version = mem_alloc((size_t)r->rows + 1, sizeof *r->version);
    r->address = message_server(index);
    if (!r->version ||
        text_into(r->endpoint, sizeof r->endpoint, "%s", endpoint))
        return -1;
    return endpoint_connect(c->endpoint, endpoint);
}

static int open_remotes(struct client *c, const char *endpoints)
{
    c->remotes = mem_alloc((size_t)c->job.servers, sizeof *c->remotes);
    if (!c->remotes)
        return -1;
    for (int i = 0; i < c->job.servers; i++) {
        char one[MESSAGE_ENDPOINT];
        size_t len = strcspn(endpoints, ",");
        if (text_into(one, sizeof one, "%.*s", (int)len, endpoints))
            return -1;
        c->nremotes++;
        if (open_remote(c, &c->remotes[i], i, one))
            return -1;
        endpoints += len + (endpoints[len] == ',');
    }
    return 0;
}

// A message is at most as long as a server takes.
static int open_squeeze(struct client *c)
{
    const struct sync_settings *set = &c->job.squeeze;
    size_t slice = c->job.slice;
    c->squeeze = squeeze_find(set->squeeze);
    if (!c->squeeze)
        return buffers_open(&c->half, slice * sizeof(uint16_t));
    size_t bytes = c->squeeze->bytes(set, slice);
    if (bytes > PS_MAX_SLICE)
        return fail("a message of %zu bytes is more than a server takes, %d; "
                    "try: half of slice_kb",
                    bytes, PS_MAX_SLICE);
    c->scratch =
        mem_alloc(c->squeeze->scratch ? c->squeeze->scratch(slice) : 1, 1);
    return c->scratch ? buffers_open(&c->half, bytes) : -1;
}

int client_open(struct client *c, const struct ps_job *job,
                const struct message_ops *transport, const char *endpoints,
                const struct sync_job *sync)
{
    const char *curve = sync->cluster->curve;
    struct endpoint_config end = {.servers = job->servers,
                                  .curve = curve ? curve : "",
                                  .timeout_s = sync->cluster->timeout_s};
    c->job = *job;
    c->params = sync->params;
    c->grads = sync->grads;
    c->ready = SIZE_MAX;
    c->round = 1;
    open_lock(c);
    if (endpoint_open(&c->endpoint, transport, &end) || open_squeeze(c) ||
        open_remotes(c, endpoints))
        return -1;
    c->lane = spans_lane(sync->spans, "communication");
    pthread_mutex_lock(&c->lock);
    if (run_and_unlock(c, TASK_HELLO))
        return -1;
    c->running =
        !c->job.threadless && !pthread_create(&c->thread, NULL, run, c);
    return c->running || c->job.threadless
               ? 0
               : fail("client: cannot start its thread");
}

void client_close(struct client *c)
{
    if (!c->endpoint)
        return;
    if (c->running) {
        pthread_mutex_lock(&c->lock);
        c->stop = true;
        pthread_cond_signal(&c->changed);
        pthread_mutex_unlock(&c->lock);
        endpoint_wake(c->endpoint);
        pthread_join(c->thread, NULL);
    }
    for (int i = 0; i < c->nremotes; i++) {
        struct remote *r = &c->remotes[i];
        if (r->welcome && endpoint_is_up(c->endpoint, i))
            (void)client_send(c, r, (struct ps_head){.kind = PS_BYE}, NULL, 0);
        mem_free(r->version);
    }
    endpoint_close(&c->endpoint);
    buffers_close(&c->half);
    residuals_close(&c->residuals);
    mem_free(c->scratch);
    mem_free(c->remotes);
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
    *c = (struct client){0};
}
