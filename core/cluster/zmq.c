// zmq.c - a worker's side of the rendezvous: it sends its piece and gets all.

#include "cluster/cluster.h"

#include "base/base.h"
#include "cluster/rendezvous.h"
#include "message/message.h"

#include <string.h>

struct client {
    struct endpoint *endpoint;
    const char *server; // the rendezvous server's endpoint
    uint64_t exchange;  // the next one
    double start_s;     // added to the deadline of the first
};

// Returns the deadline of the next exchange.
static double limit_s(const struct cluster *c)
{
    const struct client *me = c->state;
    return c->timeout_s + (me->exchange ? 0 : me->start_s);
}

static int client_open(struct cluster *c, const struct cluster_config *config)
{
    c->rank = config->rank;
    c->world = config->world;
    if (c->world < 1 || c->world > RENDEZVOUS_MAX_WORLD || c->rank < 0 ||
        c->rank >= c->world)
        return fail("rank=%d world=%d; try: 0 <= rank < world", c->rank,
                    c->world);
    if (!config->rendezvous || !*config->rendezvous)
        return fail(
            "rendezvous= is not set; try: "
            "rendezvous=tcp://HOST:PORT, where rank 0 or ps_server 0 listens");
    struct client *me = c->state = mem_alloc(1, sizeof *me);
    const struct endpoint_config one = {.servers = 1,
                                        .curve = c->curve,
                                        .timeout_s = c->timeout_s};
    if (!me)
        return -1;
    me->start_s = config->start_s;
    me->server = config->rendezvous;
    return endpoint_open(&me->endpoint, &message_zmq, &one) ||
                   endpoint_connect(me->endpoint, me->server)
               ? -1
               : 0;
}

static int give(struct cluster *c, enum rendezvous_kind kind, const void *in,
                size_t bytes)
{
    struct client *me = c->state;
    uint8_t head[RENDEZVOUS_HEAD];
    const struct message_peer server = message_server(0);
    const struct payload data = {.at = in, .bytes = bytes};
    struct rendezvous_head h = {
        .kind = (uint32_t)kind,
        .rank = (uint32_t)c->rank,
        .world = (uint32_t)c->world,
        .timeout_ms = (uint32_t)(limit_s(c) * 1000) + 1,
        .exchange = me->exchange,
        .bytes = bytes,
    };
    rendezvous_head_put(head, &h);
    return endpoint_send(me->endpoint, &server, head, RENDEZVOUS_HEAD, &data);
}

// Waits for a message from the rendezvous server. At the deadline the server
// sends an error that says which ranks are missing, so the wait ends a little
// after the deadline. NULL after fail().
static struct message *next_message(struct cluster *c)
{
    struct client *me = c->state;
    double limit = limit_s(c);
    uint64_t end = now_ns() + (uint64_t)((limit + 0.3) * 1e9);
    for (uint64_t now; (now = now_ns()) < end;) {
        endpoint_wait(me->endpoint, (int)((end - now) / 1000000) + 1);
        struct message *p = endpoint_receive(me->endpoint);
        if (p)
            return p;
        if (endpoint_check(me->endpoint)) {
            cluster_let_cause_show();
            return NULL;
        }
    }
    fail("rendezvous %s: no answer within %.3g s; try: is it running, and is "
         "this its port?",
         me->server, limit);
    return NULL;
}

// 0, or 1 if the answer is still to come, or -1 after fail().
static int read_answer(const struct client *me, const struct message *p,
                       void *out, size_t bytes)
{
    struct rendezvous_head h;
    if (rendezvous_head_get(&h, p->head, p->head_bytes))
        return -1;
    if (h.kind == RENDEZVOUS_ERROR)
        return fail("%.*s", (int)p->bytes, (const char *)p->data);
    if (h.kind == RENDEZVOUS_WAIT && h.exchange == me->exchange)
        return 1;
    if (h.kind != RENDEZVOUS_ALL || h.exchange != me->exchange ||
        p->bytes != bytes)
        return fail("rendezvous %s: an answer out of order", me->server);
    memcpy(out, p->data, bytes);
    return 0;
}

static int client_allgather(struct cluster *c, const void *in, void *out,
                            size_t bytes)
{
    struct client *me = c->state;
    if (bytes > RENDEZVOUS_MAX_BYTES)
        return fail("rendezvous: %zu bytes are too many for the control plane",
                    bytes);
    int rc = give(c, RENDEZVOUS_GIVE, in, bytes) ? -1 : 1;
    while (rc > 0) {
        struct message *p = next_message(c);
        rc = p ? read_answer(me, p, out, bytes * (size_t)c->world) : -1;
        message_drop(p);
    }
    me->exchange += !rc;
    return rc;
}

// Says goodbye, and waits for the server's goodbye, a message that cannot be
// read, or the end of the connection. After that nothing is left to send. If
// it left our goodbye to ZeroMQ instead, and the server ended at this moment,
// closing would take the socket's whole linger time.
static void say_goodbye(struct cluster *c)
{
    struct client *me = c->state;
    struct rendezvous_head h;
    if (!me->endpoint || !endpoint_is_up(me->endpoint, 0) ||
        give(c, RENDEZVOUS_BYE, "", 0))
        return;
    for (struct message *p; (p = next_message(c)); message_drop(p))
        if (rendezvous_head_get(&h, p->head, p->head_bytes) ||
            h.kind == RENDEZVOUS_BYE) {
            message_drop(p);
            return;
        }
}

static void client_close(struct cluster *c)
{
    struct client *me = c->state;
    if (!me)
        return;
    say_goodbye(c);
    endpoint_close(&me->endpoint);
    mem_free(me);
    c->state = NULL;
}

const struct cluster_ops cluster_zmq = {
    .open = client_open,
    .allgather = client_allgather,
    .close = client_close,
};
