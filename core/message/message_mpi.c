// message_mpi.c - messages over MPI point-to-point: all endpoints are
// mpi://RANK.
//
//     eager   an envelope, the head, and the data if they are small: received
//             into one of SLOTS pre-posted buffers, in the order sent
//     data    larger data follow in a second message of MPI, without a copy;
//             the envelope tells the receiver their size
//
// A message is complete when its data have arrived. Later messages of the same
// sender wait for it, so that messages between two endpoints stay in order.
// Under mpirun, a rank that dies ends the whole job.

#include "message/message.h"

#include "base/base.h"
#include "message/carry.h"
#include "message/mpi_call.h"

#include <string.h>

enum {
    EAGER = 1024,  // bytes
    HEAD_AT = 16,  // after the envelope
    DATA_AT = 128, // aligned, with space for a head before it
    SLOTS = 8,     // posted receives of eager messages
    COMING = 64,   // most data messages that are received at once
    EACH = 4       // most data messages that are sent at once to a rank, and
                   // that a worker receives at once from a server
};
enum { MOST = 65 << 20 }; // bytes of data: above the largest slice
static const double leave_s = 1;

struct envelope {
    uint64_t head_bytes, bytes;
};

struct packet {
    struct message message; // the first member, so that a pointer to it
                            // also points to the packet
    bool whole;             // its data have arrived
    int rank;
    void *buffer; // for data that do not fit into `eager`
    size_t buffer_bytes;
    struct packet *next_waiting; // in the list `waiting`
    _Alignas(64) uint8_t eager[EAGER];
};

struct sending {
    struct sending *next;
    MPI_Request requests[2]; // of the eager message, of the data
    int rank;
    bool large; // its data do not fit into `eager`
    struct payload data;
    size_t bytes; // of `eager`
    uint8_t eager[];
};

struct outbox {
    struct sending *first, *last;
};

struct peer {
    struct message_queue coming; // messages from this rank, in order
    struct outbox waiting; // messages to it that were not started, in order
    int under_way;         // large messages to it that were started
    int server;            // its number as a worker's server; -1: none
};

struct transport {
    int rank, ranks, nservers;
    int *rank_of;      // by server
    struct peer *from; // by rank
    struct packet *slots[SLOTS];
    MPI_Request eager[SLOTS];
    int slot; // the one that gets the next eager message
    struct packet *coming[COMING];
    MPI_Request data[COMING];
    int ncoming;
    struct packet *waiting, *waiting_last; // their data are not received yet
    struct message_queue ready; // whole messages, for endpoint_receive()
    struct message *spare;      // packets to be used again
    struct outbox out;          // messages that were started, to any rank
    atomic_bool woken;          // ends a wait; it announces nothing else
};

// ---- receiving

static struct packet *take_spare(struct endpoint *m)
{
    struct transport *o = m->state;
    struct packet *k = (struct packet *)o->spare;
    if (k)
        o->spare = k->message.next;
    else
        k = mem_alloc(1, sizeof *k);
    CHECK(k != NULL); // little more than a kilobyte
    k->message = (struct message){.endpoint = m, .server = -1};
    k->whole = false;
    return k;
}

static void transport_drop(struct message *p)
{
    struct transport *o = p->endpoint->state;
    p->next = o->spare;
    o->spare = p;
}

static void open_slot(struct endpoint *m, int i)
{
    struct transport *o = m->state;
    o->slots[i] = take_spare(m);
    MPI(MPI_Irecv(o->slots[i]->eager, EAGER, MPI_BYTE, MPI_ANY_SOURCE,
                  CARRY_EAGER, MPI_COMM_WORLD, &o->eager[i]));
}

static void receive_data(struct transport *o, struct packet *k)
{
    int i = o->ncoming++;
    if (k->buffer_bytes < k->message.bytes) {
        carry_free(k->buffer);
        k->buffer = carry_buffer(k->message.bytes);
        CHECK(k->buffer != NULL);
        k->buffer_bytes = k->message.bytes;
    }
    k->message.data = k->buffer;
    o->coming[i] = k;
    carry_receive(k->buffer, k->message.bytes, k->rank, &o->data[i]);
}

// Moves the whole messages of a rank to `ready`, up to the first that is not
// whole.
static void deliver(struct transport *o, int rank)
{
    struct message_queue *q = &o->from[rank].coming;
    while (q->first && ((struct packet *)q->first)->whole)
        message_put(&o->ready, message_take(q));
}

// The most data messages to receive at once. Each needs a buffer, and they
// share the link.
static int most_coming(const struct transport *o)
{
    int most = EACH * o->nservers;
    return most && most < COMING ? most : COMING;
}

static void eager_came(struct endpoint *m, int rank)
{
    struct transport *o = m->state;
    struct packet *k = o->slots[o->slot];
    struct message *p = &k->message;
    struct envelope e;
    memcpy(&e, k->eager, sizeof e);
    CHECK(e.head_bytes <= DATA_AT - HEAD_AT && e.bytes <= MOST);
    open_slot(m, o->slot);
    o->slot = (o->slot + 1) % SLOTS;
    k->rank = rank;
    p->from = message_server(rank);
    p->server = o->from[rank].server;
    p->head = k->eager + HEAD_AT;
    p->head_bytes = e.head_bytes;
    p->data = k->eager + DATA_AT;
    p->bytes = e.bytes;
    message_put(&o->from[rank].coming, p);
    k->whole = e.bytes <= EAGER - DATA_AT;
    if (k->whole) {
        deliver(o, rank);
    } else if (o->ncoming < most_coming(o) && !o->waiting) {
        receive_data(o, k);
    } else {
        k->next_waiting = NULL;
        *(o->waiting ? &o->waiting_last->next_waiting : &o->waiting) = k;
        o->waiting_last = k;
    }
}

static void data_came(struct transport *o, int i)
{
    struct packet *k = o->coming[i];
    k->whole = true;
    o->ncoming--;
    memmove(o->coming + i, o->coming + i + 1,
            (size_t)(o->ncoming - i) * sizeof *o->coming);
    memmove(o->data + i, o->data + i + 1,
            (size_t)(o->ncoming - i) * sizeof *o->data);
    deliver(o, k->rank);
    if (o->waiting) {
        k = o->waiting;
        o->waiting = k->next_waiting;
        receive_data(o, k);
    }
}

// ---- sending

static void add(struct outbox *b, struct sending *s)
{
    s->next = NULL;
    if (b->first)
        b->last->next = s;
    else
        b->first = s;
    b->last = s;
}

static void start(struct transport *o, struct sending *s)
{
    add(&o->out, s);
    MPI(MPI_Isend(s->eager, (int)s->bytes, MPI_BYTE, s->rank, CARRY_EAGER,
                  MPI_COMM_WORLD, &s->requests[0]));
    s->requests[1] = MPI_REQUEST_NULL;
    if (s->large)
        carry_send(s->data.at, s->data.bytes, s->rank, &s->requests[1]);
    o->from[s->rank].under_way += s->large;
}

static void start_some(struct transport *o, int rank)
{
    struct peer *c = &o->from[rank];
    while (c->waiting.first && c->under_way < EACH) {
        struct sending *s = c->waiting.first;
        c->waiting.first = s->next;
        start(o, s);
    }
}

static void forget_first(struct outbox *b)
{
    struct sending *s = b->first;
    b->first = s->next;
    if (s->data.sent)
        s->data.sent((void *)(uintptr_t)s->data.at, s->data.hint);
    mem_free(s);
}

// Calls `sent` of complete messages, from the oldest on, and starts waiting
// ones.
static void clear_sent(struct transport *o)
{
    for (struct sending *s; (s = o->out.first);) {
        int rank = s->rank;
        if (s->requests[0] != MPI_REQUEST_NULL ||
            s->requests[1] != MPI_REQUEST_NULL)
            return;
        o->from[rank].under_way -= s->large;
        forget_first(&o->out);
        start_some(o, rank);
    }
}

static void free_copy(void *data, void *hint)
{
    (void)hint;
    mem_free(data);
}

// Copies data that the caller may change at once, such as a long HELLO.
static int copy(struct payload *d)
{
    void *at = mem_alloc(d->bytes, 1);
    if (!at)
        return -1;
    memcpy(at, d->at, d->bytes);
    *d = (struct payload){at, d->bytes, free_copy, NULL};
    return 0;
}

static int transport_send(struct endpoint *m, const struct message_peer *to,
                          const void *head, size_t head_bytes,
                          const struct payload *data)
{
    struct transport *o = m->state;
    struct envelope e = {head_bytes, data->bytes};
    bool fits = data->bytes <= EAGER - DATA_AT;
    size_t bytes = DATA_AT + (fits ? data->bytes : 0);
    int peer = 0;
    memcpy(&peer, to->id, sizeof peer);
    int rank = o->nservers ? o->rank_of[peer] : peer;
    struct sending *s = mem_alloc(1, sizeof *s + bytes);
    CHECK(head_bytes <= DATA_AT - HEAD_AT && data->bytes <= MOST);
    if (!s)
        return -1;
    s->data = *data;
    s->rank = rank;
    s->large = !fits;
    s->bytes = bytes;
    if (!fits && !data->sent && copy(&s->data)) {
        mem_free(s);
        return -1;
    }
    memcpy(s->eager, &e, sizeof e);
    memcpy(s->eager + HEAD_AT, head, head_bytes);
    if (fits && data->bytes)
        memcpy(s->eager + DATA_AT, data->at, data->bytes);
    add(&o->from[rank].waiting, s);
    start_some(o, rank);
    return 0;
}

// ---- waiting

// Waits for one event: an eager message, data, or a send that is complete.
// False: none happened until then.
static bool go_on(struct endpoint *m, uint64_t until_ns)
{
    struct transport *o = m->state;
    MPI_Request all[COMING + 3];
    MPI_Status status;
    struct sending *first = o->out.first;
    int n = o->ncoming;
    memcpy(all, o->data, sizeof o->data);
    all[n] = o->eager[o->slot];
    all[n + 1] = first ? first->requests[0] : MPI_REQUEST_NULL;
    all[n + 2] = first ? first->requests[1] : MPI_REQUEST_NULL;
    int i = carry_wait(all, n + 3, until_ns, &o->woken, &status);
    if (i > n) {
        first->requests[i - n - 1] = MPI_REQUEST_NULL;
        clear_sent(o);
    } else if (i == n) {
        eager_came(m, status.MPI_SOURCE);
    } else if (i >= 0) {
        data_came(o, i);
    }
    return i >= 0;
}

static struct message *transport_receive(struct endpoint *m)
{
    struct transport *o = m->state;
    while (!o->ready.first && go_on(m, 0))
        ;
    return message_take(&o->ready);
}

static void transport_wait(struct endpoint *m, int ms)
{
    struct transport *o = m->state;
    uint64_t until = now_ns() + (uint64_t)ms * 1000000u;
    while (!o->ready.first && go_on(m, until))
        ;
    atomic_store(&o->woken, false);
}

static void transport_wake(struct endpoint *m)
{
    struct transport *o = m->state;
    atomic_store(&o->woken, true);
}

// ---- open and close

static int transport_open(struct endpoint *m, const struct endpoint_config *c)
{
    struct transport *o = m->state;
    int there = 0;
    for (int i = 0; i < SLOTS; i++)
        o->eager[i] = MPI_REQUEST_NULL;
    MPI(MPI_Initialized(&there));
    if (!there)
        return fail("transport=mpi: not started by mpirun; try: lockstep train "
                    "transport=mpi");
    if (*c->curve)
        return fail("transport=mpi has no keys; try: curve= with "
                    "transport=zmq");
    MPI(MPI_Comm_rank(MPI_COMM_WORLD, &o->rank));
    MPI(MPI_Comm_size(MPI_COMM_WORLD, &o->ranks));
    o->from = mem_alloc((size_t)o->ranks, sizeof *o->from);
    o->rank_of = mem_alloc((size_t)o->ranks, sizeof *o->rank_of);
    if (!o->from || !o->rank_of ||
        text_into(m->address, sizeof m->address, "mpi://%d", o->rank))
        return -1;
    for (int r = 0; r < o->ranks; r++)
        o->from[r].server = -1;
    for (int i = 0; i < SLOTS; i++)
        open_slot(m, i);
    return 0;
}

static int transport_connect(struct endpoint *m, const char *endpoint)
{
    struct transport *o = m->state;
    int rank, used = 0;
    if (sscanf(endpoint, "mpi://%d%n", &rank, &used) != 1 || endpoint[used])
        return fail("%s: not mpi://RANK; try: lockstep train transport=mpi, "
                    "which names the servers",
                    endpoint);
    if (rank < 0 || rank >= o->ranks || rank == o->rank)
        return fail("%s: there are ranks 0 to %d, this is %d", endpoint,
                    o->ranks - 1, o->rank);
    o->from[rank].server = o->nservers;
    o->rank_of[o->nservers++] = rank;
    return 0;
}

// Sends what still waits, for at most leave_s. Other ranks send nothing to us
// any more.
static void transport_close(struct endpoint *m)
{
    struct transport *o = m->state;
    uint64_t until = now_ns() + (uint64_t)(leave_s * 1e9);
    while (o->out.first && go_on(m, until))
        ;
    while (o->out.first) {
        mpi_give_up(&o->out.first->requests[0]);
        mpi_give_up(&o->out.first->requests[1]);
        forget_first(&o->out);
    }
    for (int i = 0; i < o->ncoming; i++)
        mpi_give_up(&o->data[i]);
    for (int i = 0; i < SLOTS; i++) {
        mpi_give_up(&o->eager[i]);
        if (o->slots[i])
            transport_drop(&o->slots[i]->message);
    }
    for (int r = 0; o->from && r < o->ranks; r++) {
        while (o->from[r].coming.first)
            transport_drop(message_take(&o->from[r].coming));
        while (o->from[r].waiting.first)
            forget_first(&o->from[r].waiting);
    }
    while (o->ready.first)
        transport_drop(message_take(&o->ready));
    for (struct message *p = o->spare, *next; p; p = next) {
        next = p->next;
        carry_free(((struct packet *)p)->buffer);
        mem_free(p);
    }
    mem_free(o->rank_of);
    mem_free(o->from);
}

const struct message_ops message_mpi = {
    .name = "mpi",
    .state_size = sizeof(struct transport),
    .open = transport_open,
    .connect = transport_connect,
    .send = transport_send,
    .receive = transport_receive,
    .drop = transport_drop,
    .wait = transport_wait,
    .wake = transport_wake,
    .close = transport_close,
};
