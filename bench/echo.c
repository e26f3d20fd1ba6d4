// echo.c - ZeroMQ DEALER sockets send slices to a ROUTER socket, which sends
// the same slices back.

#include "bench/echo.h"

#include "base/base.h"
#include "base/half.h"
#include "cluster/cluster.h"
#include "message/auth.h"
#include "message/connection.h"

#include <stdatomic.h>
#include <string.h>
#include <zmq.h>

enum {
    WINDOW = 8,  // slices on the way to a server
    SERVERS = 64 // servers at most
};

// ---- the server

struct echo {
    void *context, *socket;
    struct auth *auth;
    atomic_bool stop;
};

int echo_open(struct echo **out, const char *bind, double timeout_s,
              char *endpoint)
{
    struct echo *e = *out = mem_alloc(1, sizeof *e);
    if (!e)
        return -1;
    e->context = zmq_ctx_new();
    if (!e->context)
        return fail("echo: %s", zmq_strerror(zmq_errno()));
    e->socket =
        connection_listen(e->context, bind, "", timeout_s, endpoint, &e->auth);
    return e->socket ? 0 : -1;
}

// Sends one message back to its sender. Returns 1; 0 if there is none; or -1.
static int answer(struct echo *e)
{
    zmq_msg_t id, data;
    zmq_msg_init(&id);
    zmq_msg_init(&data);
    int rc = zmq_msg_recv(&id, e->socket, ZMQ_DONTWAIT) >= 0;
    if (rc && (zmq_msg_recv(&data, e->socket, 0) < 0 ||
               zmq_msg_send(&id, e->socket, ZMQ_SNDMORE) < 0 ||
               zmq_msg_send(&data, e->socket, 0) < 0))
        rc = fail("echo: %s", zmq_strerror(zmq_errno()));
    zmq_msg_close(&id);
    zmq_msg_close(&data);
    return rc;
}

int echo_run(struct echo *e)
{
    int rc = 0;
    while (rc >= 0 && !atomic_load(&e->stop)) {
        zmq_pollitem_t item = {.socket = e->socket, .events = ZMQ_POLLIN};
        zmq_poll(&item, 1, 50);
        while ((rc = answer(e)) > 0)
            ;
    }
    return rc;
}

void echo_stop(struct echo *e)
{
    atomic_store(&e->stop, true);
}

void echo_close(struct echo **echo)
{
    struct echo *e = *echo;
    if (!e)
        return;
    if (e->socket)
        zmq_close(e->socket);
    auth_close(&e->auth);
    if (e->context)
        zmq_ctx_term(e->context);
    mem_free(e);
    *echo = NULL;
}

// ---- the worker

struct remote { // a server
    struct connection link;
    size_t sent, got, end; // bytes of its part of the gradients
    int credit;            // slices that may still be sent
};

struct caller {
    void *context;
    struct remote remotes[SERVERS];
    int servers;
    size_t slice, width; // bytes of a slice, and of a gradient on the wire
};

static int caller_open(struct sync *s)
{
    struct caller *c = s->state;
    const struct sync_settings *set = s->job.settings;
    const char *at = set->servers.endpoints;
    const struct cluster *cluster = s->job.cluster;
    s->own_update = true; // so that sync.c does not update
    c->slice = (size_t)set->slice_kb * 1024;
    c->width = dtype_bytes(set->wire);
    c->context = zmq_ctx_new();
    while (*at && c->servers < SERVERS) {
        char one[MESSAGE_ENDPOINT];
        size_t len = strcspn(at, ",");
        if (text_into(one, sizeof one, "%.*s", (int)len, at) ||
            connection_open(&c->remotes[c->servers++].link, c->context, one, "",
                            cluster->timeout_s))
            return -1;
        at += len + (at[len] == ',');
    }
    return c->servers ? 0 : fail("zmq-echo: servers= names no server");
}

static void caller_close(struct sync *s)
{
    struct caller *c = s->state;
    for (int i = 0; i < c->servers; i++)
        connection_close(&c->remotes[i].link);
    if (c->context)
        zmq_ctx_term(c->context);
}

// Sends slices while there is credit, without copying them.
static int send_slices(const struct sync *s, const struct caller *c,
                       struct remote *f)
{
    while (f->sent < f->end && f->credit > 0) {
        zmq_msg_t msg;
        size_t left = f->end - f->sent, n = left < c->slice ? left : c->slice;
        CHECK(zmq_msg_init_data(&msg, (char *)s->job.grads + f->sent, n, NULL,
                                NULL) == 0);
        if (zmq_msg_send(&msg, f->link.socket, 0) < 0)
            return connection_not_sent(&f->link);
        f->sent += n;
        f->credit--;
    }
    return 0;
}

// Receives all slices that have arrived.
static int receive_slices(struct remote *f)
{
    zmq_msg_t msg;
    zmq_msg_init(&msg);
    while (zmq_msg_recv(&msg, f->link.socket, ZMQ_DONTWAIT) >= 0) {
        f->got += zmq_msg_size(&msg);
        f->credit++;
    }
    zmq_msg_close(&msg);
    return connection_check(&f->link);
}

static int caller_step(struct sync *s, const struct sync_in *in,
                       struct sync_out *out)
{
    struct caller *c = s->state;
    zmq_pollitem_t items[SERVERS];
    size_t bytes = s->job.n * c->width, each = bytes / (size_t)c->servers;
    (void)in, (void)out;
    for (int i = 0; i < c->servers; i++) {
        struct remote *f = &c->remotes[i];
        f->sent = f->got = each * (size_t)i;
        f->end = i + 1 < c->servers ? each * ((size_t)i + 1) : bytes;
        f->credit = WINDOW;
        items[i] = (zmq_pollitem_t){f->link.socket, 0, ZMQ_POLLIN, 0};
    }
    for (int open = c->servers; open > 0;) {
        open = 0;
        for (int i = 0; i < c->servers; i++) {
            struct remote *f = &c->remotes[i];
            if (receive_slices(f) || send_slices(s, c, f))
                return -1;
            open += f->got < f->end;
        }
        long wait_ms = (long)(s->job.cluster->timeout_s * 1000);
        if (open && zmq_poll(items, c->servers, wait_ms) == 0)
            return fail("zmq-echo: nothing arrived for %ld ms", wait_ms);
    }
    s->stats.bytes_out += bytes;
    return 0;
}

const struct sync_ops sync_echo = {
    .state_size = sizeof(struct caller),
    .open = caller_open,
    .step = caller_step,
    .close = caller_close,
};
