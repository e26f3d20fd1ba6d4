// network.c - matches sends with receives, and moves messages over the links,
// from event to event.

#include "virtual/network.h"

#include "base/base.h"
#include "base/rng.h"

#include <stdlib.h>
#include <string.h>

struct network_message {
    int from, to, stream;
    size_t bytes;
    double ready_s, begin_s, arrived_s; // begin_s < 0: it does not move yet
    bool waits_for_receiver;
    void *copy;                     // a copy of its bytes, from when it moves
    struct network_op *send, *recv; // NULL: none yet, or already dropped
    struct network_message *next;
};

struct network {
    const struct virtual_setup *setup;
    struct virtual_result *result;
    struct network_message *messages; // not yet received, oldest first
    struct network_op *ops;           // posted, oldest first
    double *out_free, *in_free;       // by host: when its links are free
    bool *closed;                     // by rank: it died and its links closed
    long *posted;                     // by (sends, rank, peer)
    size_t capacity;                  // of result->messages
    uint64_t events;
};

// An event that may be next. The earliest is next. Of several at that time, a
// receive from anybody comes first. Among the others, and among such receives,
// the one that was ready first is next. If they were ready at the same time, a
// number from the seed decides, and at last the order of posting.
struct event {
    double at, ready;
    uint64_t tie;
    struct network_message *message; // that begins to move, or is taken
    struct network_op *any; // the receive that takes it; NULL: it begins
};

struct network *network_open(const struct virtual_setup *setup,
                             struct virtual_result *result)
{
    struct network *n = calloc(1, sizeof *n);
    size_t ranks = (size_t)setup->ranks;
    if (!n) {
        fail("virtual: no memory for the network");
        return NULL;
    }
    n->setup = setup;
    n->result = result;
    n->out_free = calloc(ranks, sizeof *n->out_free);
    n->in_free = calloc(ranks, sizeof *n->in_free);
    n->closed = calloc(ranks, sizeof *n->closed);
    n->posted = calloc(2 * ranks * (ranks + 1), sizeof *n->posted);
    if (!n->out_free || !n->in_free || !n->closed || !n->posted) {
        fail("virtual: no memory for the network of %d ranks", setup->ranks);
        network_close(&n);
    }
    return n;
}

static int host(const struct network *n, int rank)
{
    return n->setup->hosts ? rank % n->setup->hosts : rank;
}

// Whether a message takes no time, waits for no receiver, and is not counted.
static bool is_free(const struct network *n, const struct network_message *m)
{
    return (m->stream & VIRTUAL_ENVELOPE) || host(n, m->from) == host(n, m->to);
}

static void message_free(struct network_message *m)
{
    free(m->copy);
    free(m);
}

void network_close(struct network **np)
{
    struct network *n = *np;
    *np = NULL;
    if (!n)
        return;
    while (n->messages) {
        struct network_message *m = n->messages;
        n->messages = m->next;
        message_free(m);
    }
    free(n->out_free);
    free(n->in_free);
    free(n->closed);
    free(n->posted);
    free(n);
}

static void unlink_message(struct network *n, struct network_message *m)
{
    struct network_message **at = &n->messages;
    while (*at != m)
        at = &(*at)->next;
    *at = m->next;
    message_free(m);
}

static void match(struct network_message *m, struct network_op *recv)
{
    m->recv = recv;
    recv->message = m;
    recv->peer = m->from;
    if (m->begin_s >= 0)
        recv->done_s = fmax(m->arrived_s, recv->ready_s);
}

// The oldest message of a stream from `from` to `to` that no receive has yet;
// NULL: none.
static struct network_message *unmatched(const struct network *n, int from,
                                         int to, int stream)
{
    struct network_message *m = n->messages;
    while (m &&
           (m->from != from || m->to != to || m->stream != stream || m->recv))
        m = m->next;
    return m;
}

// From m on, the oldest message of a stream from `from` to `to` that does not
// move yet. It has no receive yet, or may get another.
static struct network_message *open_from(struct network_message *m, int from,
                                         int to, int stream)
{
    while (m && (m->from != from || m->to != to || m->stream != stream ||
                 (m->recv && (m->begin_s >= 0 || m->recv->any))))
        m = m->next;
    return m;
}

static bool is_open(const struct network_op *op, int from, int to, int stream)
{
    return !op->sends && !op->any && !op->closed && op->rank == to &&
           op->peer == from && op->stream == stream &&
           (!op->message || op->message->begin_s < 0);
}

// Called when an operation was posted or dropped at `now`. Matches the messages
// from `from` with the receives of `to` again, in order, except messages that
// move. A receive that gets another message is ready for it now.
static void rematch(struct network *n, int from, int to, int stream, double now)
{
    struct network_message *m = open_from(n->messages, from, to, stream);
    for (struct network_op *o = n->ops; o; o = o->next) {
        if (!is_open(o, from, to, stream))
            continue;
        if (m && o->message != m) {
            o->ready_s = fmax(o->ready_s, now);
            match(m, o);
        }
        o->message = m;
        m = m ? open_from(m->next, from, to, stream) : NULL;
    }
    for (; m; m = open_from(m->next, from, to, stream)) {
        if (m->recv && m->recv->message == m)
            m->recv->message = NULL;
        m->recv = NULL;
    }
}

static int log_message(struct network *n, const struct network_message *m,
                       double end_s)
{
    struct virtual_result *v = n->result;
    if (v->n_messages == n->capacity) {
        size_t capacity = n->capacity ? 2 * n->capacity : 256;
        void *more = realloc(v->messages, capacity * sizeof *v->messages);
        if (!more)
            return fail("virtual: no memory for %zu messages", capacity);
        v->messages = more;
        n->capacity = capacity;
    }
    void *data = n->setup->keep && m->bytes ? malloc(m->bytes) : NULL;
    if (n->setup->keep && m->bytes && !data)
        return fail("virtual: no memory for a message of %zu bytes", m->bytes);
    if (data)
        memcpy(data, m->copy, m->bytes);
    bool free_of_cost = is_free(n, m);
    v->messages[v->n_messages++] = (struct virtual_message){
        .from = m->from,
        .to = m->to,
        .bytes = m->bytes,
        .begin_s = m->begin_s,
        .end_s = end_s,
        .arrived_s = m->arrived_s,
        .at = m->send->from,
        .is_free = free_of_cost,
        .is_envelope = m->stream & VIRTUAL_ENVELOPE,
        .data = data,
    };
    if (free_of_cost)
        return 0;
    v->rank[m->from].bytes_out += m->bytes;
    v->rank[m->to].bytes_in += m->bytes;
    return 0;
}

static int begin(struct network *n, struct network_message *m, double at)
{
    bool free_of_cost = is_free(n, m);
    double end =
        free_of_cost ? at : at + (double)m->bytes / n->setup->bytes_per_s;
    m->copy = malloc(m->bytes ? m->bytes : 1);
    if (!m->copy)
        return fail("virtual: no memory for a message of %zu bytes", m->bytes);
    if (m->bytes)
        memcpy(m->copy, m->send->from, m->bytes);
    m->begin_s = at;
    m->arrived_s = free_of_cost ? at : end + n->setup->alpha_s;
    if (!free_of_cost)
        n->out_free[host(n, m->from)] = n->in_free[host(n, m->to)] = end;
    m->send->done_s = end;
    if (m->recv)
        m->recv->done_s = fmax(m->arrived_s, m->recv->ready_s);
    return free_of_cost && !n->setup->keep ? 0 : log_message(n, m, end);
}

static int post_send(struct network *n, struct network_op *op)
{
    struct network_message *m = calloc(1, sizeof *m);
    if (!m)
        return fail("virtual: no memory for a message");
    *m = (struct network_message){.from = op->rank,
                                  .to = op->peer,
                                  .stream = op->stream,
                                  .bytes = op->bytes,
                                  .ready_s = op->ready_s,
                                  .begin_s = -1,
                                  .send = op};
    m->waits_for_receiver = op->bytes > n->setup->eager && !is_free(n, m);
    op->message = m;
    struct network_message **last = &n->messages;
    while (*last)
        last = &(*last)->next;
    *last = m;
    rematch(n, op->rank, op->peer, op->stream, op->ready_s);
    return op->stream & VIRTUAL_ENVELOPE ? begin(n, m, op->ready_s) : 0;
}

int network_post(struct network *n, struct network_op *op)
{
    size_t ranks = (size_t)n->setup->ranks;
    size_t peer = (size_t)(op->peer + 1), me = (size_t)op->rank;
    long *posted = &n->posted[(op->sends * ranks + me) * (ranks + 1) + peer];
    op->number = *posted + 1;
    *posted += !(op->stream & VIRTUAL_ENVELOPE);
    op->message = NULL;
    op->closed = op->peer >= 0 && n->closed[op->peer];
    if (op->closed && !op->sends) // what the peer sent before still arrives
        op->closed = !unmatched(n, op->peer, op->rank, op->stream);
    op->done_s = op->closed ? op->ready_s : INFINITY;
    if (op->sends && !op->closed && post_send(n, op))
        return -1;
    struct network_op **last = &n->ops;
    while (*last)
        last = &(*last)->next;
    *last = op;
    op->next = NULL;
    if (!op->sends)
        rematch(n, op->peer, op->rank, op->stream, op->ready_s);
    return 0;
}

static bool before(const struct event *a, const struct event *b)
{
    if (a->at != b->at)
        return a->at < b->at;
    if ((a->any != NULL) != (b->any != NULL))
        return a->any != NULL;
    if (a->ready != b->ready)
        return a->ready < b->ready;
    return a->tie < b->tie;
}

// All messages of one sender get the same number. So the older one goes first,
// because it is examined first.
static uint64_t tie(const struct network *n, int from)
{
    return rng_u64(rng_key(n->setup->seed, n->events), (uint64_t)from);
}

// The event in which a message that does not move yet begins to move.
static struct event beginning(const struct network *n,
                              struct network_message *m)
{
    struct event e = {.at = INFINITY, .message = m, .ready = m->ready_s};
    if (m->waits_for_receiver && !m->recv)
        return e;
    if (m->waits_for_receiver)
        e.ready = fmax(e.ready, m->recv->ready_s);
    double links_free =
        fmax(n->out_free[host(n, m->from)], n->in_free[host(n, m->to)]);
    e.at = is_free(n, m) ? e.ready : fmax(e.ready, links_free);
    e.tie = tie(n, m->from);
    return e;
}

// The event in which a receive from anybody takes a message. An eager message
// can be taken when it is in memory. Any other can be taken when its sender is
// ready.
static struct event taking(const struct network *n, struct network_op *any,
                           struct network_message *m)
{
    struct event e = {.at = INFINITY, .message = m, .any = any};
    if (m->to != any->rank || m->stream != any->stream ||
        m != unmatched(n, m->from, m->to, m->stream))
        return e;
    if (m->begin_s < 0 && !m->waits_for_receiver)
        return e;
    e.ready = m->begin_s < 0 ? m->ready_s : m->arrived_s;
    e.at = fmax(any->ready_s, e.ready);
    e.tie = tie(n, m->from);
    return e;
}

static struct event next_event(const struct network *n)
{
    struct event best = {.at = INFINITY};
    for (struct network_message *m = n->messages; m; m = m->next) {
        struct event e = {.at = INFINITY};
        if (m->begin_s < 0)
            e = beginning(n, m);
        if (before(&e, &best))
            best = e;
    }
    for (struct network_op *o = n->ops; o; o = o->next)
        for (struct network_message *m = n->messages;
             m && o->any && !o->message; m = m->next) {
            struct event e = taking(n, o, m);
            if (e.at < INFINITY && before(&e, &best))
                best = e;
        }
    return best;
}

double network_next(struct network *n)
{
    return next_event(n).at;
}

int network_step(struct network *n)
{
    struct event e = next_event(n);
    n->events++;
    if (e.any) {
        match(e.message, e.any);
        return 0;
    }
    return begin(n, e.message, e.at);
}

size_t network_bytes(const struct network_op *op)
{
    return op->message ? op->message->bytes : 0;
}

void network_drop(struct network *n, struct network_op *op, bool take,
                  double now)
{
    struct network_message *m = op->message;
    struct network_op **at = &n->ops;
    while (*at != op)
        at = &(*at)->next;
    *at = op->next;
    if (!m)
        return;
    int from = m->from, to = m->to, stream = m->stream;
    if (op->sends && m->begin_s >= 0) {
        m->send = NULL;
    } else if (op->sends) {
        if (m->recv)
            m->recv->message = NULL;
        if (m->recv && m->recv->any)
            m->recv->peer = NETWORK_ANYBODY;
        unlink_message(n, m);
    } else if (m->begin_s >= 0) {
        if (take && m->bytes && m->bytes <= op->bytes)
            memcpy(op->to, m->copy, m->bytes);
        if (m->send)
            m->send->message = NULL;
        unlink_message(n, m);
    } else {
        m->recv = NULL;
    }
    rematch(n, from, to, stream, now);
}

void network_shut(struct network *n, int rank, double now)
{
    n->closed[rank] = true;
    for (struct network_op *o = n->ops; o; o = o->next)
        if (o->peer == rank && o->done_s == INFINITY) {
            o->closed = true;
            o->done_s = now;
        }
}
