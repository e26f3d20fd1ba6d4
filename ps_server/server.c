// server.c - messages in, to whom they belong.
//
// Whatever a peer sends is checked twice: against its own limits (ps_wire), and
// against the moment (here and in the policies). Who breaks the rules is
// dropped with a line that says why; the server itself goes on.

#include "ps_server/server.h"
#include "ps_server/peers.h"

#include "base/base.h"
#include "cluster/curve.h"
#include "ps_server/team.h"
#include "telemetry/align.h"
#include "telemetry/span.h"

#include <errno.h>
#include <string.h>

enum { MAX_FRAMES = 3 }; // sender, head, data
enum { MAX_LINES = 20 }; // about strangers

// ---- sending

static bool send_frames(struct server *s, const struct hub_peer *to,
                        const void *head, size_t head_bytes, zmq_msg_t *data)
{
    bool sent =
        zmq_send(s->socket, to->id, to->n, ZMQ_SNDMORE | ZMQ_DONTWAIT) >= 0 &&
        zmq_send(s->socket, head, head_bytes, ZMQ_SNDMORE | ZMQ_DONTWAIT) >=
            0 &&
        zmq_msg_send(data, s->socket, ZMQ_DONTWAIT) >= 0;
    zmq_msg_close(data);
    return sent;
}

static bool send_message(struct server *s, const struct hub_peer *to,
                         struct ps_head head, zmq_msg_t *data)
{
    uint8_t raw[PS_HEAD];
    head.rank = s->described ? (uint32_t)s->job.index : 0;
    head.bytes = zmq_msg_size(data);
    ps_head_put(raw, &head);
    return send_frames(s, to, raw, PS_HEAD, data);
}

static void copy_into(zmq_msg_t *msg, const void *data, size_t bytes)
{
    CHECK(zmq_msg_init_size(msg, bytes) == 0);
    if (bytes)
        memcpy(zmq_msg_data(msg), data, bytes);
}

void server_send(struct server *s, int rank, struct ps_head head,
                 const void *data, size_t bytes)
{
    zmq_msg_t msg;
    copy_into(&msg, data, bytes);
    send_message(s, &s->peers[rank].id, head, &msg);
}

void server_send_buffer(struct server *s, int rank, struct ps_head head,
                        struct buffer *b, size_t bytes)
{
    zmq_msg_t msg;
    buffer_ref(b);
    if (zmq_msg_init_data(&msg, b->data, bytes, buffer_sent, b)) {
        buffer_unref(b);
        server_fail(s, "no memory for a message");
        return;
    }
    send_message(s, &s->peers[rank].id, head, &msg);
}

const void *server_numbers(struct server *s, zmq_msg_t *data)
{
    const void *at = zmq_msg_data(data);
    if ((uintptr_t)at % sizeof(float) == 0)
        return at;
    memcpy(s->aligned, at, zmq_msg_size(data));
    return s->aligned;
}

void server_error(struct server *s, const struct hub_peer *to, const char *text)
{
    zmq_msg_t msg;
    copy_into(&msg, text, strlen(text));
    send_message(s, to, (struct ps_head){.kind = PS_ERROR}, &msg);
}

bool server_ping(struct server *s, int rank)
{
    zmq_msg_t none;
    zmq_msg_init(&none);
    return send_message(s, &s->peers[rank].id,
                        (struct ps_head){.kind = PS_PING}, &none) ||
           zmq_errno() != EHOSTUNREACH;
}

static void send_for_hub(void *ctx, const struct hub_peer *to,
                         const uint8_t head[HUB_HEAD], const void *data,
                         size_t bytes)
{
    zmq_msg_t msg;
    copy_into(&msg, data, bytes);
    send_frames(ctx, to, head, HUB_HEAD, &msg);
}
// ---- messages

static int step_message(struct server *s, int rank, const struct ps_head *h,
                        zmq_msg_t *data)
{
    struct ps_step step;
    if (ps_step_get(&step, zmq_msg_data(data), zmq_msg_size(data)))
        return -1;
    s->peers[rank].step = step;
    return s->policy->step(s, rank, h);
}

// How our clock stands, or where the run's zero lies on it.
static void clock_message(struct server *s, int rank, const struct ps_head *h)
{
    struct ps_head answer = {.kind = PS_CLOCK, .round = align_host()};
    if (h->version)
        spans_set_zero(s->config.spans, h->version);
    answer.version = now_ns();
    if (!h->version)
        server_send(s, rank, answer, NULL, 0);
}

static int not_here(const struct ps_head *h)
{
    return fail("%s is not for this job", ps_kind_name(h->kind));
}

// A message of a worker that is known. 0, or -1 after fail().
static int message(struct server *s, int rank, const struct ps_head *h,
                   zmq_msg_t *data)
{
    const struct policy *p = s->policy;
    if (h->rank != (uint32_t)rank)
        return fail("%s in the name of rank %u", ps_kind_name(h->kind),
                    h->rank);
    if (h->kind != PS_BYE && !s->running)
        return fail("%s before all workers are here", ps_kind_name(h->kind));
    switch (h->kind) {
    case PS_SET:
        return vectors_set(s, rank, h, zmq_msg_data(data));
    case PS_PULL:
        return vectors_pull(s, rank, h);
    case PS_STEP:
        return step_message(s, rank, h, data);
    case PS_PUSH:
        return p->push(s, rank, h, data);
    case PS_COMMIT:
        return p->commit ? p->commit(s, rank, h) : not_here(h);
    case PS_CLAIM:
        return p->claim ? p->claim(s, rank, h) : not_here(h);
    case PS_DROP:
        return p->drop && s->job.elastic ? p->drop(s, rank, h) : not_here(h);
    case PS_JOIN:
        return p->join && s->job.elastic ? p->join(s, rank, h) : not_here(h);
    case PS_CLOCK:
        clock_message(s, rank, h);
        return 0;
    case PS_BYE:
        peers_goodbye(s, rank);
        return 0;
    default:
        return fail("%s is not for servers", ps_kind_name(h->kind));
    }
}

static void refuse(struct server *s, const struct hub_peer *from, int rank,
                   const char *why)
{
    server_error(s, from, why);
    if (rank >= 0) {
        log_line("server: dropped rank %d: %s", rank, why);
        server_lost(s, rank, why);
    } else if (++s->strangers <= MAX_LINES) {
        log_line("server: refused a peer: %s%s", why,
                 s->strangers == MAX_LINES ? " (no more lines of these)" : "");
    }
}

static void dispatch(struct server *s, const struct hub_peer *from,
                     zmq_msg_t *head, zmq_msg_t *data)
{
    char why[512];
    struct ps_head h = {0};
    int rank = peers_find(s, from), rc;
    if (hub_is_head(zmq_msg_data(head), zmq_msg_size(head))) {
        if (hub_receive(s->hub, from, zmq_msg_data(head), zmq_msg_size(head),
                        zmq_msg_data(data), zmq_msg_size(data)))
            log_line("server: %s", fail_message());
        return;
    }
    rc = ps_head_get(&h, zmq_msg_data(head), zmq_msg_size(head));
    if (!rc && h.bytes != zmq_msg_size(data))
        rc =
            fail("%s announces %llu bytes and brings %zu", ps_kind_name(h.kind),
                 (unsigned long long)h.bytes, zmq_msg_size(data));
    if (!rc && rank < 0 && h.kind == PS_HELLO)
        rc = peers_hello(s, from, zmq_msg_data(data), zmq_msg_size(data));
    else if (!rc && rank < 0)
        rc = fail("%s from somebody who has not said HELLO",
                  ps_kind_name(h.kind));
    else if (!rc)
        rc = message(s, rank, &h, data);
    if (rc) {
        snprintf(why, sizeof why, "%s", fail_message());
        refuse(s, from, rank, why);
    }
}

// One message, if there is one; surplus frames are read and make it invalid.
static bool receive(struct server *s)
{
    zmq_msg_t frame[MAX_FRAMES];
    int count = 0, more = 1;
    for (int i = 0; i < MAX_FRAMES; i++)
        zmq_msg_init(&frame[i]);
    while (more) {
        zmq_msg_t *f = &frame[count < MAX_FRAMES ? count : MAX_FRAMES - 1];
        if (zmq_msg_recv(f, s->socket, ZMQ_DONTWAIT) < 0)
            break;
        more = zmq_msg_more(f);
        count++;
    }
    struct hub_peer from = {.n = zmq_msg_size(&frame[0])};
    if (count > 0)
        s->heard_ns = now_ns();
    if (count > 0 && from.n <= HUB_ID) {
        memcpy(from.id, zmq_msg_data(&frame[0]), from.n);
        span_begin(s->lane, SPAN_RECEIVE, -1);
        if (count == MAX_FRAMES)
            dispatch(s, &from, &frame[1], &frame[2]);
        else
            refuse(s, &from, peers_find(s, &from),
                   "a message of too few or too "
                   "many frames");
        span_end(s->lane);
    }
    for (int i = 0; i < MAX_FRAMES; i++)
        zmq_msg_close(&frame[i]);
    return count > 0;
}

int server_open(struct server **out, const struct server_config *config)
{
    struct server *s = mem_alloc(1, sizeof *s);
    if (!s)
        return -1;
    s->config = *config;
    s->lane = spans_compute(config->spans);
    s->heard_ns = now_ns();
    s->context = zmq_ctx_new();
    if (!s->context) {
        fail("zmq: %s", zmq_strerror(zmq_errno()));
        goto close_server;
    }
    if (team_open(&s->team, config->threads) ||
        hub_open(&s->hub, send_for_hub, s) ||
        (*config->curve &&
         curve_guard_open(&s->guard, s->context, config->curve)))
        goto close_server;
    s->socket = link_listen(s->context, config->bind, config->curve,
                            config->timeout_s, s->endpoint);
    if (!s->socket)
        goto close_server;
    *out = s;
    return 0;
close_server:
    server_close(&s);
    return -1;
}

int server_run(struct server *s)
{
    uint64_t ticked = 0;
    while (!s->failed && !s->done && !atomic_load(&s->stop)) {
        zmq_pollitem_t item = {.socket = s->socket, .events = ZMQ_POLLIN};
        zmq_poll(&item, 1, 20);
        for (int i = 0; i < 64 && !s->failed && !s->done && receive(s); i++)
            ;
        if (now_ns() - ticked > 20000000u) {
            hub_tick(s->hub);
            peers_tick(s);
            ticked = now_ns();
        }
    }
    return s->failed ? fail("%s", s->why) : 0;
}

void server_stop(struct server *s)
{
    atomic_store(&s->stop, true);
}

void server_close(struct server **server)
{
    struct server *s = *server;
    if (!s)
        return;
    if (s->socket)
        zmq_close(s->socket);
    if (s->policy)
        s->policy->close(s); // messages that it holds
    curve_guard_close(&s->guard);
    if (s->context)
        zmq_ctx_term(s->context); // sends what is left, for a second at most
    store_close(&s->store);
    mem_free(s->aligned);
    mem_free(s->peers);
    hub_close(&s->hub);
    team_close(&s->team);
    mem_free(s);
    *server = NULL;
}
