// message_virtual.c - messages between ranks of a virtual cluster.
//
// A rank has two lines with each other rank, one out and one in
// (virtual/line.h). Messages to one rank wait in a queue. There are two kinds
// of payload. Slices of a vector stay in place until they are sent, after the
// envelope. A few other bytes (eager payload) are copied at once, into the
// envelope.

#include "explain/message_virtual.h"

#include "base/base.h"
#include "virtual/line.h"

#include <math.h>
#include <string.h>

enum { MOST_HEAD = 64, MOST_EAGER = 512 };

struct envelope {
    uint64_t head_bytes, bytes; // bytes: of the payload sent after it
    uint64_t eager_bytes;       // of the payload inside it
    uint8_t head[MOST_HEAD];
    _Alignas(8) uint8_t eager[MOST_EAGER];
};

struct packet {             // a message that arrives, or has arrived
    struct message message; // first: its address is the packet's
    struct envelope envelope;
    void *buffer;
};

struct sending {
    struct sending *next;
    struct envelope envelope;
    struct payload data;
};

struct peer {
    struct virtual_line in, out;
    struct packet *coming;
    struct sending *first, *last; // messages to it, in order
    int server;                   // its number as a server; -1: it is none
};

struct state {
    struct virtual_rank *rank;
    int ranks, nservers;
    int *rank_of; // rank of each server
    struct peer *peers;
    const struct virtual_req **waits;
    struct message_queue ready;
};

const void *message_virtual_head(const void *envelope)
{
    const struct envelope *e = envelope;
    return e->head;
}

size_t message_virtual_bytes(const void *envelope)
{
    const struct envelope *e = envelope;
    return e->bytes;
}

static int state_open(struct endpoint *m, const struct endpoint_config *c)
{
    struct state *s = m->state;
    s->rank = virtual_self();
    CHECK(s->rank != NULL);
    (void)c;
    int ranks = virtual_ranks(s->rank), stream = virtual_stream(s->rank);
    s->peers = mem_alloc((size_t)ranks, sizeof *s->peers);
    s->rank_of = mem_alloc((size_t)ranks, sizeof *s->rank_of);
    s->waits = mem_alloc(2 * (size_t)ranks, sizeof *s->waits);
    if (!s->peers || !s->rank_of || !s->waits ||
        text_into(m->address, sizeof m->address, "virtual://%d",
                  virtual_id(s->rank)))
        return -1;
    s->ranks = ranks;
    for (int r = 0; r < ranks; r++) {
        struct peer *p = &s->peers[r];
        p->server = -1;
        p->in = (struct virtual_line){.rank = s->rank,
                                      .peer = r,
                                      .stream = stream,
                                      .head_bytes = sizeof(struct envelope),
                                      .payload = message_virtual_bytes};
        p->out = p->in;
    }
    return 0;
}

static int state_connect(struct endpoint *m, const char *endpoint)
{
    struct state *s = m->state;
    int rank, used = 0;
    if (sscanf(endpoint, "virtual://%d%n", &rank, &used) != 1 ||
        endpoint[used] || rank < 0 || rank >= s->ranks)
        return fail("%s: not virtual://RANK with a rank below %d", endpoint,
                    s->ranks);
    s->peers[rank].server = s->nservers;
    s->rank_of[s->nservers++] = rank;
    return 0;
}

// ---- sending

static void forget(struct sending *k)
{
    if (k->data.sent)
        k->data.sent((void *)(uintptr_t)k->data.at, k->data.hint);
    mem_free(k);
}

// Sends as much as can be sent to a rank now.
static int push(struct peer *p)
{
    while (p->first) {
        struct sending *k = p->first;
        struct iovec v[2] = {
            {&k->envelope, sizeof k->envelope},
            {(void *)(uintptr_t)k->data.at, k->data.bytes},
        };
        ssize_t sent =
            virtual_line_send(&p->out, v, k->envelope.bytes > 0 ? 2 : 1);
        if (sent <= 0)
            return (int)sent;
        p->first = k->next;
        forget(k);
    }
    return 0;
}

static int state_send(struct endpoint *m, const struct message_peer *to,
                      const void *head, size_t head_bytes,
                      const struct payload *data)
{
    struct state *s = m->state;
    int peer = 0;
    memcpy(&peer, to->id, sizeof peer);
    struct peer *p = &s->peers[s->nservers ? s->rank_of[peer] : peer];
    struct sending *k = mem_alloc(1, sizeof *k);
    CHECK(head_bytes <= MOST_HEAD);
    if (!k)
        return -1;
    k->data = *data;
    k->envelope.head_bytes = head_bytes;
    memcpy(k->envelope.head, head, head_bytes);
    if (data->sent) {
        k->envelope.bytes = data->bytes;
    } else if (data->bytes > 0) {
        CHECK(data->bytes <= MOST_EAGER);
        k->envelope.eager_bytes = data->bytes;
        memcpy(k->envelope.eager, data->at, data->bytes);
    }
    if (p->first)
        p->last->next = k;
    else
        p->first = k;
    p->last = k;
    return push(p);
}

// ---- receiving

static void put_ready(struct endpoint *m, struct peer *p, int rank)
{
    struct state *s = m->state;
    struct packet *k = p->coming;
    struct message *msg = &k->message;
    p->coming = NULL;
    msg->endpoint = m;
    msg->from = message_server(rank);
    msg->server = p->server;
    msg->head = k->envelope.head;
    msg->head_bytes = k->envelope.head_bytes;
    bool here = k->envelope.eager_bytes > 0;
    msg->data = here ? k->envelope.eager : k->buffer;
    msg->bytes = here ? k->envelope.eager_bytes : k->envelope.bytes;
    message_put(&s->ready, msg);
}

// Receives all that has arrived from a rank. 0, or -1 after fail().
static int pull(struct endpoint *m, int rank)
{
    struct state *s = m->state;
    struct peer *p = &s->peers[rank];
    for (;;) {
        if (!p->coming && !(p->coming = mem_alloc(1, sizeof *p->coming)))
            return -1;
        struct packet *k = p->coming;
        ssize_t got = 1;
        if (p->in.left == 0)
            got = virtual_line_recv(&p->in, &k->envelope, sizeof k->envelope);
        if (got > 0 && p->in.left > 0) {
            if (!k->buffer && !(k->buffer = mem_alloc(k->envelope.bytes, 1)))
                return -1;
            got = virtual_line_recv(&p->in, k->buffer, k->envelope.bytes);
        }
        if (got <= 0)
            return (int)got;
        put_ready(m, p, rank);
    }
}

static void move(struct endpoint *m)
{
    struct state *s = m->state;
    int me = virtual_id(s->rank);
    for (int r = 0; r < s->ranks; r++)
        if (r != me && (push(&s->peers[r]) || pull(m, r)))
            return; // its links are closed: it sends nothing any more
}

static struct message *state_receive(struct endpoint *m)
{
    struct state *s = m->state;
    if (!s->ready.first)
        move(m);
    return message_take(&s->ready);
}

static void state_drop(struct message *p)
{
    struct packet *k = (struct packet *)p;
    mem_free(k->buffer);
    mem_free(k);
}

static void state_wait(struct endpoint *m, int ms)
{
    struct state *s = m->state;
    int n = 0;
    (void)ms;
    move(m);
    for (int r = 0; r < s->ranks; r++) {
        const struct virtual_line *lines[] = {&s->peers[r].in,
                                              &s->peers[r].out};
        for (int i = 0; i < 2; i++)
            if ((s->waits[n] = virtual_line_waits(lines[i])))
                n++;
    }
    if (!s->ready.first && n > 0 &&
        virtual_wait_any(s->rank, s->waits, n, INFINITY) >= 0)
        move(m);
}

// Waiting messages are sent before the endpoint closes.
static void state_close(struct endpoint *m)
{
    struct state *s = m->state;
    for (int r = 0; r < s->ranks; r++) {
        struct peer *p = &s->peers[r];
        const struct virtual_req *out;
        while (!push(p) && p->first && (out = virtual_line_waits(&p->out)))
            if (virtual_wait_any(s->rank, &out, 1, INFINITY) < 0)
                break;
        while (p->first) {
            struct sending *k = p->first;
            p->first = k->next;
            forget(k);
        }
        virtual_line_close(&p->in);
        virtual_line_close(&p->out);
        if (p->coming)
            state_drop(&p->coming->message);
    }
    for (struct message *p; (p = message_take(&s->ready));)
        state_drop(p);
    mem_free(s->peers);
    mem_free(s->rank_of);
    mem_free(s->waits);
}

const struct message_ops message_virtual = {
    .name = "virtual",
    .state_size = sizeof(struct state),
    .open = state_open,
    .connect = state_connect,
    .send = state_send,
    .receive = state_receive,
    .drop = state_drop,
    .wait = state_wait,
    .close = state_close,
};
