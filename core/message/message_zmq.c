// message_zmq.c - messages over ZeroMQ: a server's ROUTER, a worker's DEALERs.
//
// A ROUTER names the sender of each message, and can reply to each sender at
// any time and in any order. ROUTER_MANDATORY makes it an error if a message
// cannot be delivered. A worker has a DEALER for each server. A message has two
// frames; at a ROUTER the sender's name comes before them.
//
// Structs of dropped messages are used again. A struct packet holds ZeroMQ's
// own messages, so data are not copied. Only data that ZeroMQ leaves in its
// receive buffer, at an address that is not aligned for numbers, are copied.

#include "message/message.h"

#include "base/base.h"
#include "message/auth.h"
#include "message/connection.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zmq.h>

enum { DESCRIPTORS = 65536 };

struct packet {
    struct message message; // the first member, so that a pointer to it
                            // also points to the packet
    zmq_msg_t head, data;
    void *copy; // of data that are not aligned, or NULL
};

struct transport {
    struct endpoint_config config;
    void *context;
    struct message *spare; // packets to be used again
    // of a server
    void *router;
    struct auth *auth;
    // of a worker
    int nlinks, at; // number of links; the link to be read next
    struct connection *links;
    int wake_fd;
    int nitems;
    zmq_pollitem_t *items; // wake_fd; the router, or two for each link: its
                           // socket, its events
};

// A peer that connects and says nothing holds a descriptor until the time limit
// of the handshake. Allow more descriptors than such peers can hold.
static void allow_descriptors(void)
{
    struct rlimit l;
    if (getrlimit(RLIMIT_NOFILE, &l) || l.rlim_cur >= DESCRIPTORS)
        return;
    l.rlim_cur = l.rlim_max < DESCRIPTORS ? l.rlim_max : DESCRIPTORS;
    (void)!setrlimit(RLIMIT_NOFILE, &l); // if it fails, the limit stays
}

static void watch(struct transport *o, void *socket, int fd)
{
    o->items[o->nitems++] = (zmq_pollitem_t){socket, fd, ZMQ_POLLIN, 0};
}

static zmq_pollitem_t *items_of(const struct transport *o, int link)
{
    return &o->items[1 + 2 * link];
}

static int transport_open(struct endpoint *m, const struct endpoint_config *c)
{
    struct transport *o = m->state;
    size_t servers = (size_t)c->servers;
    o->config = *c;
    o->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    o->context = zmq_ctx_new();
    if (o->wake_fd < 0 || !o->context)
        return fail("zmq: %s", strerror(errno));
    o->links = mem_alloc(servers, sizeof *o->links);
    o->items = mem_alloc(2 + 2 * servers, sizeof *o->items);
    if (!o->links || !o->items)
        return -1;
    watch(o, NULL, o->wake_fd);
    if (!c->bind)
        return 0;
    allow_descriptors();
    o->router = connection_listen(o->context, c->bind, c->curve, c->timeout_s,
                                  m->address, &o->auth);
    if (!o->router)
        return -1;
    watch(o, o->router, 0);
    return 0;
}

static int transport_connect(struct endpoint *m, const char *endpoint)
{
    struct transport *o = m->state;
    CHECK(o->nlinks < o->config.servers);
    struct connection *l = &o->links[o->nlinks++];
    if (connection_open(l, o->context, endpoint, o->config.curve,
                        o->config.timeout_s))
        return -1;
    watch(o, l->socket, 0);
    watch(o, l->events, 0);
    return 0;
}

static struct connection *link_of(const struct transport *o,
                                  const struct message_peer *to)
{
    int n = 0;
    memcpy(&n, to->id, sizeof n);
    CHECK(to->n == sizeof n && n >= 0 && n < o->nlinks);
    return &o->links[n];
}

// ---- sending

static int make(zmq_msg_t *msg, const struct payload *d)
{
    if (d->sent) {
        if (!zmq_msg_init_data(msg, (void *)(uintptr_t)d->at, d->bytes, d->sent,
                               d->hint))
            return 0;
        d->sent((void *)(uintptr_t)d->at, d->hint);
    } else if (!zmq_msg_init_size(msg, d->bytes)) {
        if (d->bytes)
            memcpy(zmq_msg_data(msg), d->at, d->bytes);
        return 0;
    }
    return fail("zmq: no memory for a message of %zu bytes", d->bytes);
}

static int transport_send(struct endpoint *m, const struct message_peer *to,
                          const void *head, size_t head_bytes,
                          const struct payload *data)
{
    const int more = ZMQ_SNDMORE | ZMQ_DONTWAIT;
    const struct transport *o = m->state;
    struct connection *link = o->router ? NULL : link_of(o, to);
    void *socket = link ? link->socket : o->router;
    zmq_msg_t msg;
    if (make(&msg, data))
        return -1;
    if ((link || zmq_send(socket, to->id, to->n, more) >= 0) &&
        zmq_send(socket, head, head_bytes, more) >= 0 &&
        zmq_msg_send(&msg, socket, ZMQ_DONTWAIT) >= 0)
        return 0;
    int error = zmq_errno();
    zmq_msg_close(&msg);
    errno = error;
    return link                    ? connection_not_sent(link)
           : error == EHOSTUNREACH ? 1
                                   : fail("%s", zmq_strerror(error));
}

// ---- receiving

static struct packet *take_spare(struct endpoint *m)
{
    struct transport *o = m->state;
    struct message *p = o->spare;
    if (p)
        o->spare = p->next;
    else
        p = mem_alloc(1, sizeof(struct packet));
    CHECK(p != NULL); // less than a kilobyte
    struct packet *k = (struct packet *)p;
    *p = (struct message){.endpoint = m, .server = -1};
    zmq_msg_init(&k->head);
    zmq_msg_init(&k->data);
    k->copy = NULL;
    return k;
}

static void transport_drop(struct message *p)
{
    struct packet *k = (struct packet *)p;
    struct transport *o = p->endpoint->state;
    zmq_msg_close(&k->head);
    zmq_msg_close(&k->data);
    mem_free(k->copy);
    p->next = o->spare;
    o->spare = p;
}

enum frames { NONE, BROKEN, TWO };

// Receives the frames of one message after the sender's name.
static enum frames read_frames(void *socket, struct packet *k)
{
    if (zmq_msg_recv(&k->head, socket, ZMQ_DONTWAIT) < 0)
        return NONE;
    if (!zmq_msg_more(&k->head) ||
        zmq_msg_recv(&k->data, socket, ZMQ_DONTWAIT) < 0)
        return BROKEN;
    enum frames found = zmq_msg_more(&k->data) ? BROKEN : TWO;
    while (zmq_msg_more(&k->data) &&
           zmq_msg_recv(&k->data, socket, ZMQ_DONTWAIT) >= 0)
        ;
    return found;
}

static struct message *finish(struct packet *k, enum frames found)
{
    struct message *p = &k->message;
    if (found != TWO)
        return p;
    p->head = zmq_msg_data(&k->head);
    p->head_bytes = zmq_msg_size(&k->head);
    p->data = zmq_msg_data(&k->data);
    p->bytes = zmq_msg_size(&k->data);
    if ((uintptr_t)p->data % sizeof(float) && p->bytes) {
        k->copy = mem_alloc(p->bytes, 1);
        CHECK(k->copy != NULL); // it is at most ZeroMQ's buffer of 8 KiB
        memcpy(k->copy, p->data, p->bytes);
        p->data = k->copy;
    }
    return p;
}

static struct message *from_router(struct endpoint *m)
{
    const struct transport *o = m->state;
    struct packet *k = take_spare(m);
    struct message *p = &k->message;
    if (zmq_msg_recv(&k->head, o->router, ZMQ_DONTWAIT) < 0) {
        transport_drop(p);
        return NULL;
    }
    size_t n = zmq_msg_size(&k->head);
    bool more = zmq_msg_more(&k->head);
    // names from ZeroMQ have 5 bytes, but a peer may choose its own
    if (n <= MESSAGE_ID)
        memcpy(p->from.id, zmq_msg_data(&k->head), p->from.n = n);
    enum frames found = more ? read_frames(o->router, k) : BROKEN;
    return finish(k, p->from.n ? found : BROKEN);
}

static struct message *transport_receive(struct endpoint *m)
{
    struct transport *o = m->state;
    if (o->router)
        return from_router(m);
    for (; o->at < o->nlinks; o->at++) {
        if (!items_of(o, o->at)->revents)
            continue;
        struct packet *k = take_spare(m);
        enum frames found = read_frames(o->links[o->at].socket, k);
        k->message.server = o->at;
        k->message.from = message_server(o->at);
        if (found != NONE)
            return finish(k, found);
        transport_drop(&k->message);
    }
    return NULL;
}

static void transport_wait(struct endpoint *m, int ms)
{
    struct transport *o = m->state;
    eventfd_t drained;
    zmq_poll(o->items, o->nitems, ms);
    o->at = 0;
    if (o->items[0].revents)
        CHECK(!eventfd_read(o->wake_fd, &drained) || errno == EAGAIN);
}

static void transport_wake(struct endpoint *m)
{
    const struct transport *o = m->state;
    CHECK(!eventfd_write(o->wake_fd, 1));
}

static int transport_check(struct endpoint *m)
{
    struct transport *o = m->state;
    for (int i = 0; i < o->nlinks; i++) {
        zmq_pollitem_t *item = items_of(o, i);
        if (item[1].revents && connection_check(&o->links[i])) {
            item[0].revents = ZMQ_POLLIN; // its last message
            o->at = i;
            return -1;
        }
    }
    return 0;
}

static bool transport_is_up(struct endpoint *m, int server)
{
    const struct transport *o = m->state;
    return server < o->nlinks && connection_is_up(&o->links[server]);
}

static void transport_close(struct endpoint *m)
{
    struct transport *o = m->state;
    for (int i = 0; i < o->nlinks; i++)
        connection_close(&o->links[i]);
    if (o->router)
        zmq_close(o->router);
    auth_close(&o->auth);
    if (o->context)
        zmq_ctx_term(o->context); // sends what is left
    if (o->wake_fd > 0)
        close(o->wake_fd);
    for (struct message *p = o->spare, *next; p; p = next) {
        next = p->next;
        mem_free(p);
    }
    mem_free(o->links);
    mem_free(o->items);
}

const struct message_ops message_zmq = {
    .name = "zmq",
    .notices = true,
    .state_size = sizeof(struct transport),
    .open = transport_open,
    .connect = transport_connect,
    .send = transport_send,
    .receive = transport_receive,
    .drop = transport_drop,
    .wait = transport_wait,
    .wake = transport_wake,
    .check = transport_check,
    .is_up = transport_is_up,
    .close = transport_close,
};
