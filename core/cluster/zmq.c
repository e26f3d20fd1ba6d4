// zmq.c - a worker's side of the rendezvous: it sends its piece and gets all.

#include "cluster/cluster.h"

#include "base/base.h"
#include "cluster/rendezvous.h"
#include "message/connection.h"

#include <string.h>
#include <zmq.h>

struct client {
    void *context;
    struct connection link;
    uint64_t exchange; // the next one
    double start_s;    // added to the deadline of the first
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
    if (!me)
        return -1;
    me->start_s = config->start_s;
    me->context = zmq_ctx_new();
    return connection_open(&me->link, me->context, config->rendezvous,
                           config->curve ? config->curve : "", c->timeout_s);
}

static int give(struct cluster *c, enum rendezvous_kind kind, const void *in,
                size_t bytes)
{
    struct client *me = c->state;
    uint8_t head[RENDEZVOUS_HEAD];
    struct rendezvous_head h = {
        .kind = (uint32_t)kind,
        .rank = (uint32_t)c->rank,
        .world = (uint32_t)c->world,
        .timeout_ms = (uint32_t)(limit_s(c) * 1000) + 1,
        .exchange = me->exchange,
        .bytes = bytes,
    };
    rendezvous_head_put(head, &h);
    if (zmq_send(me->link.socket, head, RENDEZVOUS_HEAD, ZMQ_SNDMORE) < 0 ||
        zmq_send(me->link.socket, in, bytes, 0) < 0)
        return connection_not_sent(&me->link);
    return 0;
}

// Waits for a message from the rendezvous server. At the deadline the server
// sends an error that says which ranks are missing, so the wait ends a little
// after the deadline. 0, or -1 after fail().
static int wait_for_rendezvous(struct cluster *c)
{
    struct client *me = c->state;
    double limit = limit_s(c);
    uint64_t end = now_ns() + (uint64_t)((limit + 0.3) * 1e9);
    for (;;) {
        uint64_t now = now_ns();
        if (now >= end)
            return fail("rendezvous %s: no answer within %.3g s; try: is it "
                        "running, and is this its port?",
                        me->link.endpoint, limit);
        zmq_pollitem_t items[] = {
            {.socket = me->link.socket, .events = ZMQ_POLLIN},
            {.socket = me->link.events, .events = ZMQ_POLLIN},
        };
        zmq_poll(items, 2, (long)((end - now) / 1000000) + 1);
        if (items[0].revents)
            return 0;
        if (connection_check(&me->link)) {
            cluster_let_cause_show();
            return -1;
        }
    }
}

// 0, or 1 if the answer is still to come, or -1 after fail().
static int read_answer(struct cluster *c, void *out, size_t bytes)
{
    struct client *me = c->state;
    uint8_t head[RENDEZVOUS_HEAD];
    struct rendezvous_head h = {0};
    zmq_msg_t data;
    zmq_msg_init(&data);
    int n = zmq_recv(me->link.socket, head, sizeof head, 0);
    int got = zmq_msg_recv(&data, me->link.socket, 0);
    int rc = -1;
    size_t size = zmq_msg_size(&data);
    if (n < 0 || got < 0)
        fail("rendezvous %s: %s", me->link.endpoint, zmq_strerror(zmq_errno()));
    else if (rendezvous_head_get(&h, head, (size_t)n))
        rc = -1;
    else if (h.kind == RENDEZVOUS_ERROR)
        fail("%.*s", (int)size, (const char *)zmq_msg_data(&data));
    else if (h.kind == RENDEZVOUS_WAIT && h.exchange == me->exchange)
        rc = 1;
    else if (h.kind != RENDEZVOUS_ALL || h.exchange != me->exchange ||
             size != bytes)
        fail("rendezvous %s: an answer out of order", me->link.endpoint);
    else
        rc = 0;
    if (!rc)
        memcpy(out, zmq_msg_data(&data), bytes);
    zmq_msg_close(&data);
    return rc;
}

static int client_allgather(struct cluster *c, const void *in, void *out,
                            size_t bytes)
{
    struct client *me = c->state;
    if (bytes > RENDEZVOUS_MAX_BYTES)
        return fail("rendezvous: %zu bytes are too many for the control plane",
                    bytes);
    int rc = give(c, RENDEZVOUS_GIVE, in, bytes) ? -1 : 1;
    while (rc > 0)
        rc = wait_for_rendezvous(c)
                 ? -1
                 : read_answer(c, out, bytes * (size_t)c->world);
    me->exchange += !rc;
    return rc;
}

// Reads one message from the rendezvous server. True if it is the server's
// goodbye or cannot be read.
static bool read_goodbye(struct client *me)
{
    uint8_t head[RENDEZVOUS_HEAD];
    struct rendezvous_head h = {0};
    int n = zmq_recv(me->link.socket, head, sizeof head, 0);
    (void)zmq_recv(me->link.socket, NULL, 0, 0); // its data
    return n < 0 || rendezvous_head_get(&h, head, (size_t)n) ||
           h.kind == RENDEZVOUS_BYE;
}

// Says goodbye, and waits for the server's goodbye or the end of the
// connection. After that nothing is left to send, so client_close() can drop
// the connection. If it left our goodbye to ZeroMQ instead, and the server
// ended at this moment, closing would take the socket's whole linger time.
static void say_goodbye(struct cluster *c)
{
    struct client *me = c->state;
    if (!me->link.socket || !connection_is_up(&me->link) ||
        give(c, RENDEZVOUS_BYE, "", 0))
        return;
    while (!wait_for_rendezvous(c) && !read_goodbye(me))
        ;
}

static void client_close(struct cluster *c)
{
    struct client *me = c->state;
    if (!me)
        return;
    say_goodbye(c);
    connection_drop(&me->link);
    zmq_ctx_term(me->context);
    mem_free(me);
    c->state = NULL;
}

const struct cluster_ops cluster_zmq = {
    .open = client_open,
    .allgather = client_allgather,
    .close = client_close,
};
