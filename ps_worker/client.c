// client.c - sockets, the thread that owns them, and waiting for it.

#include "ps_worker/client.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "device/device.h"
#include "device/vector.h"
#include "telemetry/span.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <zmq.h>

// ---- sending

static int send_head(struct client *c, struct remote *r, struct ps_head h,
                     size_t bytes)
{
    uint8_t raw[PS_HEAD];
    h.rank = (uint32_t)c->job.rank;
    h.bytes = bytes;
    ps_head_put(raw, &h);
    if (zmq_send(r->link.socket, raw, PS_HEAD, ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0)
        return fail("server %s: %s", r->link.endpoint,
                    zmq_strerror(zmq_errno()));
    return 0;
}

static int send_data(struct remote *r, zmq_msg_t *data)
{
    if (zmq_msg_send(data, r->link.socket, ZMQ_DONTWAIT) >= 0)
        return 0;
    zmq_msg_close(data);
    return fail("server %s: %s", r->link.endpoint, zmq_strerror(zmq_errno()));
}

int client_send(struct client *c, struct remote *r, struct ps_head h,
                const void *data, size_t bytes)
{
    zmq_msg_t msg;
    if (!r->beside)
        c->stats.head_out += PS_HEAD + bytes;
    CHECK(zmq_msg_init_size(&msg, bytes) == 0);
    if (bytes)
        memcpy(zmq_msg_data(&msg), data, bytes);
    if (send_head(c, r, h, bytes)) {
        zmq_msg_close(&msg);
        return -1;
    }
    return send_data(r, &msg);
}

int client_send_row(struct client *c, struct remote *r, struct ps_head h,
                    const float *from, enum dtype wire)
{
    struct slice at = shard_slice(&r->shard, (int)h.row);
    size_t bytes = at.n * dtype_bytes(wire);
    zmq_msg_t msg;
    h.dtype = wire;
    if (wire == DTYPE_F32) { // from where it lies, until the answer comes
        CHECK(zmq_msg_init_data(&msg, (void *)(uintptr_t)(from + at.off), bytes,
                                NULL, NULL) == 0);
    } else {
        struct buffer *b = buffer_get(c->narrow);
        if (!b)
            return -1;
        vector_cast_scaled(b->data, wire, from + at.off,
                           1 / ps_divisor(c->job.world, wire), at.n);
        CHECK(zmq_msg_init_data(&msg, b->data, bytes, buffer_sent, b) == 0);
    }
    if (!r->beside) {
        c->stats.head_out += PS_HEAD;
        c->stats.bytes_out += bytes;
    }
    if (send_head(c, r, h, bytes)) {
        zmq_msg_close(&msg);
        return -1;
    }
    return send_data(r, &msg);
}

// ---- receiving

static int take(struct client *c, struct remote *r, zmq_msg_t *head,
                zmq_msg_t *data)
{
    struct ps_head h = {0};
    size_t bytes = zmq_msg_size(data);
    if (ps_head_get(&h, zmq_msg_data(head), zmq_msg_size(head)) ||
        (h.bytes != bytes &&
         fail("%zu bytes came of %llu", bytes, (unsigned long long)h.bytes))) {
        char why[512];
        snprintf(why, sizeof why, "%s", fail_message());
        return fail("server %s: %s", r->link.endpoint, why);
    }
    if (!r->beside) {
        bool row = h.kind == PS_SLICE;
        c->stats.head_in += PS_HEAD + (row ? 0 : bytes);
        c->stats.bytes_in += row ? bytes : 0;
    }
    if (h.kind == PS_PING)
        return 0;
    c->heard_ns = now_ns();
    if (h.kind == PS_ERROR)
        return fail("server %s: %.*s", r->link.endpoint, (int)bytes,
                    (const char *)zmq_msg_data(data));
    if (!task_receive(c, r, &h, zmq_msg_data(data)))
        return 0;
    char why[512];
    snprintf(why, sizeof why, "%s", fail_message());
    return fail("server %s: %s", r->link.endpoint, why);
}

// All messages of one server that are here. 0, or -1 after fail().
static int receive(struct client *c, struct remote *r)
{
    for (;;) {
        zmq_msg_t head, data;
        zmq_msg_init(&head);
        zmq_msg_init(&data);
        int rc = 0, got = zmq_msg_recv(&head, r->link.socket, ZMQ_DONTWAIT);
        bool whole = got >= 0 && zmq_msg_more(&head) &&
                     zmq_msg_recv(&data, r->link.socket, 0) >= 0 &&
                     !zmq_msg_more(&data);
        if (whole)
            rc = take(c, r, &head, &data);
        else if (got >= 0)
            rc = fail("server %s: a message of too few or too many frames",
                      r->link.endpoint);
        zmq_msg_close(&head);
        zmq_msg_close(&data);
        if (rc || got < 0)
            return rc;
    }
}

// Wait for messages, for news of a connection or for the trainer.
static void sleep_until_news(struct client *c, zmq_pollitem_t *items)
{
    int n = 0;
    for (int i = 0; i < c->nremotes; i++) {
        struct link *l = &c->remotes[i].link;
        items[n++] = (zmq_pollitem_t){l->socket, 0, ZMQ_POLLIN, 0};
        items[n++] = (zmq_pollitem_t){l->events, 0, ZMQ_POLLIN, 0};
    }
    items[n++] = (zmq_pollitem_t){NULL, c->wake_fd, ZMQ_POLLIN, 0};
    zmq_poll(items, n, 50);
}

static int receive_all(struct client *c, const zmq_pollitem_t *items)
{
    uint64_t drained;
    if (items[2 * c->nremotes].revents &&
        read(c->wake_fd, &drained, sizeof drained) < 0 && errno != EAGAIN)
        return fail("eventfd: %s", strerror(errno));
    // last words before the news that the connection is gone
    for (int i = 0; i < c->nremotes; i++)
        if (items[2 * i].revents && receive(c, &c->remotes[i]))
            return -1;
    for (int i = 0; i < c->nremotes; i++)
        if (items[2 * i + 1].revents && link_check(&c->remotes[i].link)) {
            char why[512];
            snprintf(why, sizeof why, "%s", fail_message());
            if (receive(c, &c->remotes[i])) // it may have said why
                return -1;
            return fail("%s", why);
        }
    return 0;
}

// ---- the thread

static int check_deadline(const struct client *c)
{
    double waited = (double)(now_ns() - c->heard_ns) * 1e-9;
    if (!c->waiting || waited < c->timeout_s)
        return 0;
    for (int i = 0; i < c->nremotes; i++) {
        const struct remote *r = &c->remotes[i];
        if (c->current == TASK_HELLO && !r->welcome)
            return fail("server %s: %s within %.3g s; try: is it running, and "
                        "are all workers?",
                        r->link.endpoint,
                        r->link.connected ? "no welcome" : "no answer",
                        c->timeout_s);
        if (c->current != TASK_HELLO && (r->got < r->rows || !r->settled))
            return fail("server %s: no answer within %.3g s (step %llu, row %d "
                        "of %d)",
                        r->link.endpoint, c->timeout_s,
                        (unsigned long long)c->round, r->got, r->rows);
    }
    return fail("servers: no answer within %.3g s", c->timeout_s);
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
    uint64_t begin = now_ns();
    int rc = task_send(c);
    if (rows_sent(c) != before)
        span_add(c->lane, SPAN_SEND, round ? (int)c->round : -1, begin,
                 now_ns());
    return rc;
}

// A turn of the thread. The lock is held but for the wait.
static int turn(struct client *c, zmq_pollitem_t *items)
{
    if (c->task != c->current) {
        c->current = c->task;
        c->heard_ns = now_ns();
        task_begin(c);
    }
    if (c->current != TASK_NONE) {
        if (send_some(c))
            return -1;
        // a round is over only for a trainer that has come to its end
        if (task_done(c) && c->waiting) {
            c->task = c->current = TASK_NONE;
            c->waiting = false;
            pthread_cond_broadcast(&c->changed);
        }
    }
    // while a round is under way its bytes are, too
    bool moving = c->current == TASK_ROUND;
    pthread_mutex_unlock(&c->lock);
    if (moving)
        span_begin(c->lane, SPAN_RECEIVE, (int)c->round);
    sleep_until_news(c, items);
    pthread_mutex_lock(&c->lock);
    int rc = receive_all(c, items);
    if (moving)
        span_end(c->lane);
    return rc ? -1 : check_deadline(c);
}

static void *run(void *arg)
{
    struct client *c = arg;
    zmq_pollitem_t *items =
        mem_alloc(2 * (size_t)c->nremotes + 1, sizeof *items);
    pthread_mutex_lock(&c->lock);
    int rc = items ? 0 : -1;
    while (!rc && !c->stop)
        rc = turn(c, items);
    if (rc) {
        c->failed = true;
        snprintf(c->why, sizeof c->why, "%s", fail_message());
        pthread_cond_broadcast(&c->changed);
    }
    pthread_mutex_unlock(&c->lock);
    mem_free(items);
    return NULL;
}

static void wake(struct client *c)
{
    uint64_t one = 1;
    CHECK(write(c->wake_fd, &one, sizeof one) == sizeof one);
}

// Let the thread do `task` to its end. Called with the lock held.
static int await_task(struct client *c, enum task task)
{
    c->task = task;
    c->waiting = true;
    c->heard_ns = now_ns();
    wake(c);
    while (c->waiting && !c->failed)
        pthread_cond_wait(&c->changed, &c->lock);
    return c->failed ? fail("%s", c->why) : 0;
}

int client_ready(struct client *c, size_t off)
{
    pthread_mutex_lock(&c->lock);
    c->ready = off;
    c->task = TASK_ROUND;
    int rc = c->failed ? fail("%s", c->why) : 0;
    pthread_mutex_unlock(&c->lock);
    wake(c);
    return rc;
}

int client_round(struct client *c, const struct ps_step *step)
{
    pthread_mutex_lock(&c->lock);
    c->ready = 0;
    c->step = *step;
    c->stepping = true;
    int rc = await_task(c, TASK_ROUND);
    c->round++;
    c->stepping = false;
    c->ready = SIZE_MAX;
    pthread_mutex_unlock(&c->lock);
    return rc;
}

int client_set(struct client *c, enum ps_what what, const float *vector)
{
    pthread_mutex_lock(&c->lock);
    c->what = what;
    c->vector = (float *)(uintptr_t)vector; // only read
    int rc = await_task(c, TASK_SET);
    pthread_mutex_unlock(&c->lock);
    return rc;
}

int client_pull(struct client *c, enum ps_what what, float *vector,
                uint64_t sets, uint64_t version)
{
    pthread_mutex_lock(&c->lock);
    c->what = what;
    c->vector = vector;
    c->sets = sets;
    c->version = version;
    int rc = await_task(c, TASK_PULL);
    pthread_mutex_unlock(&c->lock);
    return rc;
}

int client_clock(struct client *c, uint64_t zero_ns)
{
    pthread_mutex_lock(&c->lock);
    c->zero_ns = zero_ns;
    int rc = await_task(c, TASK_CLOCK);
    pthread_mutex_unlock(&c->lock);
    return rc;
}

void client_stats(struct client *c, struct sync_stats *stats)
{
    pthread_mutex_lock(&c->lock);
    stats->bytes_out = c->stats.bytes_out;
    stats->bytes_in = c->stats.bytes_in;
    stats->head_out = c->stats.head_out;
    stats->head_in = c->stats.head_in;
    pthread_mutex_unlock(&c->lock);
}

// ---- open and close

static int open_remote(struct client *c, struct remote *r, int index,
                       const char *endpoint)
{
    r->beside = c->job.beside && index == c->job.rank;
    if (shard_make(&r->shard, c->job.n, c->job.slice, c->job.servers, index))
        return -1;
    r->rows = shard_rows(&r->shard);
    r->version = mem_alloc((size_t)r->rows + 1, sizeof *r->version);
    if (!r->version)
        return -1;
    return link_open(&r->link, c->context, endpoint, c->curve, c->timeout_s);
}

static int open_remotes(struct client *c, const char *endpoints)
{
    c->remotes = mem_alloc((size_t)c->job.servers, sizeof *c->remotes);
    if (!c->remotes)
        return -1;
    for (int i = 0; i < c->job.servers; i++) {
        char one[LINK_ENDPOINT];
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

int client_open(struct client *c, const struct ps_job *job,
                const char *endpoints, const struct sync_job *sync)
{
    c->job = *job;
    c->dev = sync->dev;
    c->params = sync->params;
    c->grads = sync->grads;
    c->timeout_s = sync->cluster->timeout_s;
    c->curve = sync->cluster->curve ? sync->cluster->curve : "";
    c->ready = SIZE_MAX;
    c->round = 1;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->changed, NULL);
    c->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    c->context = zmq_ctx_new();
    if (c->wake_fd < 0 || !c->context)
        return fail("client: %s", strerror(errno));
    c->aligned = mem_alloc(job->slice, sizeof(uint16_t));
    if (!c->aligned ||
        buffers_open(&c->narrow, job->slice * sizeof(uint16_t)) ||
        open_remotes(c, endpoints))
        return -1;
    c->lane = spans_lane(sync->spans, "communication");
    c->running = pthread_create(&c->thread, NULL, run, c) == 0;
    if (!c->running)
        return fail("client: no thread left");
    pthread_mutex_lock(&c->lock);
    int rc = await_task(c, TASK_HELLO);
    pthread_mutex_unlock(&c->lock);
    return rc;
}

void client_close(struct client *c)
{
    if (!c->context)
        return;
    if (c->running) {
        pthread_mutex_lock(&c->lock);
        c->stop = true;
        pthread_mutex_unlock(&c->lock);
        wake(c);
        pthread_join(c->thread, NULL);
    }
    for (int i = 0; i < c->nremotes; i++) {
        struct remote *r = &c->remotes[i];
        if (r->link.socket && r->welcome && link_is_up(&r->link))
            (void)client_send(c, r, (struct ps_head){.kind = PS_BYE}, NULL, 0);
        link_close(&r->link);
        mem_free(r->version);
    }
    zmq_ctx_term(c->context); // sends what is left, for a second at most
    close(c->wake_fd);
    buffers_close(&c->narrow);
    mem_free(c->aligned);
    mem_free(c->remotes);
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
    *c = (struct client){0};
}
