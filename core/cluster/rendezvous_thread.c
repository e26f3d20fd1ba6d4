// rendezvous_thread.c - a rendezvous server with its own thread and endpoint,
// for jobs without a parameter server that could run it.

#include "cluster/rendezvous.h"

#include "base/base.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { MAX_LINES = 20 }; // log lines about refused messages
// A peer that sends no heartbeat for so long counts as gone. On a busy machine
// the threads that send them may wait for a processor for many seconds.
enum { SILENT_S = 60 };

struct rendezvous_server {
    int refused; // messages
    struct endpoint *endpoint;
    struct rendezvous *rendezvous;
    pthread_t thread;
    bool running;
    atomic_bool stop; // announces nothing else
};

static bool send_to(void *ctx, const struct message_peer *to,
                    const uint8_t head[RENDEZVOUS_HEAD], const void *data,
                    size_t bytes)
{
    const struct rendezvous_server *s = ctx;
    struct payload d = {.at = data, .bytes = bytes};
    // errors are ignored: a receiver that gets nothing fails at its deadline
    return endpoint_send(s->endpoint, to, head, RENDEZVOUS_HEAD, &d) == 1;
}

static void receive_all(struct rendezvous_server *s)
{
    for (struct message *p; (p = endpoint_receive(s->endpoint));
         message_drop(p)) {
        int rc =
            p->head
                ? rendezvous_receive(s->rendezvous, &p->from, p->head,
                                     p->head_bytes, p->data, p->bytes)
                : fail("rendezvous: a message of too few or too many frames");
        if (rc && ++s->refused <= MAX_LINES)
            log_line("%s%s", fail_message(),
                     s->refused == MAX_LINES ? " (further ones are not logged)"
                                             : "");
    }
}

static void *serve(void *arg)
{
    struct rendezvous_server *s = arg;
    while (!atomic_load(&s->stop)) {
        endpoint_wait(s->endpoint, 100);
        receive_all(s);
        rendezvous_tick(s->rendezvous);
    }
    return NULL;
}

int rendezvous_start(struct rendezvous_server **out, const char *endpoint,
                     const char *curve)
{
    struct rendezvous_server *s = mem_alloc(1, sizeof *s);
    struct endpoint_config config = {.bind = endpoint,
                                     .curve = curve,
                                     .timeout_s = SILENT_S};
    if (!s)
        return -1;
    if (rendezvous_open(&s->rendezvous, send_to, s) ||
        endpoint_open(&s->endpoint, &message_zmq, &config))
        goto stop;
    s->running = pthread_create(&s->thread, NULL, serve, s) == 0;
    if (!s->running) {
        fail("rendezvous: no thread left");
        goto stop;
    }
    *out = s;
    return 0;
stop:
    rendezvous_stop(&s);
    return -1;
}

const char *rendezvous_endpoint(const struct rendezvous_server *s)
{
    return s->endpoint->address;
}

void rendezvous_stop(struct rendezvous_server **s)
{
    if (!*s)
        return;
    atomic_store(&(*s)->stop, true);
    if ((*s)->running) {
        endpoint_wake((*s)->endpoint);
        pthread_join((*s)->thread, NULL);
    }
    endpoint_close(&(*s)->endpoint);
    rendezvous_close(&(*s)->rendezvous);
    mem_free(*s);
    *s = NULL;
}
