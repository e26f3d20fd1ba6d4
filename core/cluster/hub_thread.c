// hub_thread.c - a hub with a thread and a socket of its own, for jobs that
// have no parameter server to run it.

#include "cluster/hub.h"

#include "base/base.h"
#include "cluster/curve.h"
#include "cluster/link.h"

#include <pthread.h>
#include <stdatomic.h>
#include <zmq.h>

enum { MAX_FRAMES = 3 }; // sender, head, data

struct hub_server {
    void *context, *socket;
    struct curve_guard *guard;
    struct hub *hub;
    char endpoint[LINK_ENDPOINT];
    pthread_t thread;
    bool running;
    atomic_bool stop;
};

static void send_to(void *ctx, const struct hub_peer *to,
                    const uint8_t head[HUB_HEAD], const void *data,
                    size_t bytes)
{
    struct hub_server *s = ctx;
    if (zmq_send(s->socket, to->id, to->n, ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0)
        return; // gone: its own deadline is its business
    zmq_send(s->socket, head, HUB_HEAD, ZMQ_SNDMORE | ZMQ_DONTWAIT);
    zmq_send(s->socket, data, bytes, ZMQ_DONTWAIT);
}

// One message; surplus frames are read and make it invalid.
static void receive_one(struct hub_server *s)
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
    if (count == MAX_FRAMES && from.n <= HUB_ID) {
        for (size_t i = 0; i < from.n; i++)
            from.id[i] = ((uint8_t *)zmq_msg_data(&frame[0]))[i];
        if (hub_receive(s->hub, &from, zmq_msg_data(&frame[1]),
                        zmq_msg_size(&frame[1]), zmq_msg_data(&frame[2]),
                        zmq_msg_size(&frame[2])))
            log_line("%s", fail_message());
    } else if (count > 0) {
        log_line("hub: dropped a message of %d frames", count);
    }
    for (int i = 0; i < MAX_FRAMES; i++)
        zmq_msg_close(&frame[i]);
}

static void *serve(void *arg)
{
    struct hub_server *s = arg;
    while (!atomic_load(&s->stop)) {
        zmq_pollitem_t item = {.socket = s->socket, .events = ZMQ_POLLIN};
        if (zmq_poll(&item, 1, 100) > 0)
            receive_one(s);
        hub_tick(s->hub);
    }
    return NULL;
}

int hub_start(struct hub_server **out, const char *bind, const char *curve)
{
    struct hub_server *s = mem_alloc(1, sizeof *s);
    if (!s)
        return -1;
    s->context = zmq_ctx_new();
    if (hub_open(&s->hub, send_to, s) ||
        (*curve && curve_guard_open(&s->guard, s->context, curve)))
        goto stop;
    s->socket = link_listen(s->context, bind, curve, 10, s->endpoint);
    if (!s->socket)
        goto stop;
    s->running = pthread_create(&s->thread, NULL, serve, s) == 0;
    if (!s->running) {
        fail("hub: no thread left");
        goto stop;
    }
    *out = s;
    return 0;
stop:
    hub_stop(&s);
    return -1;
}

const char *hub_endpoint(const struct hub_server *s)
{
    return s->endpoint;
}

void hub_stop(struct hub_server **s)
{
    if (!*s)
        return;
    atomic_store(&(*s)->stop, true);
    if ((*s)->running)
        pthread_join((*s)->thread, NULL);
    if ((*s)->socket)
        zmq_close((*s)->socket);
    curve_guard_close(&(*s)->guard);
    zmq_ctx_term((*s)->context);
    hub_close(&(*s)->hub);
    mem_free(*s);
    *s = NULL;
}
