// streams_mpi.c - moves the messages of a ring, or of pairs, over MPI.
//
// A call of send() becomes one message. Two messages to the right may be under
// way, so that the latency of one overlaps with the bytes of the other;
// receives for them are posted ahead. Between pairs one message is under way in
// each direction. Without payload only the first piece of a message, its head,
// is real. The rest is on pages that all ranks share, which SimGrid neither
// copies nor touches.

#include "simulate/streams_mpi.h"

#include "base/base.h"
#include "cluster/cluster.h"

#include <mpi.h>
#include <string.h>

enum { OUT_SLOTS = 2, IN_SLOTS = 3, PAGE = 4096, TAG = 1 };

struct slot {
    char *data;
    MPI_Request request;
    int bytes; // that came in
    size_t at; // how many of these the caller has taken
};

// One direction of a link.
struct line {
    int n; // messages under way, at most; 0: there is no such direction
    struct slot slots[IN_SLOTS];
    unsigned long moved; // messages sent, or taken
};

struct lines {
    bool payload;
    size_t most; // bytes of a message
    int tag;
    struct line *out, *in; // by link
    MPI_Request *waits;    // the requests of one wait()
    struct slot **of;      // the slot of each
    int n;
};

static struct streams_config usual;

void streams_mpi_usual(size_t message, bool payload)
{
    usual = (struct streams_config){.message = message, .payload = payload};
}

static char *slot_alloc(const struct lines *l)
{
    size_t shared[2] = {PAGE, 2 * PAGE};
    if (l->payload)
        return mem_alloc(l->most, 1);
    return SMPI_PARTIAL_SHARED_MALLOC(shared[1], shared, 1);
}

static void slot_free(const struct lines *l, struct slot *s)
{
    if (l->payload)
        mem_free(s->data);
    else if (s->data)
        SMPI_SHARED_FREE(s->data);
}

static struct slot *present(struct line *d)
{
    return &d->slots[d->moved % (unsigned long)d->n];
}

static void post(struct streams *p, int link, struct slot *s)
{
    struct lines *l = p->state;
    MPI_Irecv(s->data, (int)l->most, MPI_BYTE,
              streams_rank(p, p->links[link].member), l->tag, MPI_COMM_WORLD,
              &s->request);
}

static int line_open(struct streams *p, struct line *d, int slots)
{
    for (; d->n < slots; d->n++) {
        struct slot *s = &d->slots[d->n];
        s->request = MPI_REQUEST_NULL;
        if (!(s->data = slot_alloc(p->state)))
            return -1;
    }
    return 0;
}

static int link_open(struct streams *p, int k)
{
    struct lines *l = p->state;
    bool ring = p->who == STREAMS_RING;
    int out = !ring                           ? 1
              : k == LEFT                     ? 0
              : p->ops == &streams_mpi_stream ? 1
                                              : OUT_SLOTS;
    int in = !ring ? 1 : k == LEFT ? IN_SLOTS : 0;
    if (line_open(p, &l->out[k], out) || line_open(p, &l->in[k], in))
        return -1;
    for (int i = 0; i < in; i++)
        post(p, k, &l->in[k].slots[i]);
    return 0;
}

static int lines_open(struct streams *p, struct cluster *c,
                      const struct streams_config *config)
{
    struct lines *l = p->state;
    size_t links = (size_t)p->n, most = 2 * (2 + (size_t)c->world);
    const struct streams_config *use = config->message ? config : &usual;
    l->payload = use->payload;
    l->most = use->message;
    l->tag = TAG + (int)p->who;
    l->out = mem_alloc(links, sizeof *l->out);
    l->in = mem_alloc(links, sizeof *l->in);
    l->waits = mem_alloc(most, sizeof *l->waits);
    l->of = mem_alloc(most, sizeof *l->of);
    if (!l->out || !l->in || !l->waits || !l->of)
        return -1;
    for (int k = 0; k < p->n; k++)
        if (p->links[k].member != p->rank && link_open(p, k))
            return -1;
    return 0;
}

static ssize_t lines_send(struct streams *p, int to, const struct iovec *v,
                          int n)
{
    struct lines *l = p->state;
    struct line *d = &l->out[to];
    if (d->n == 0 || present(d)->request != MPI_REQUEST_NULL)
        return 0;
    struct slot *s = present(d);
    size_t bytes = 0;
    for (int k = 0; k < n; k++) {
        CHECK(bytes + v[k].iov_len <= l->most);
        if (k == 0 || l->payload)
            memcpy(s->data + bytes, v[k].iov_base, v[k].iov_len);
        bytes += v[k].iov_len;
    }
    MPI_Isend(s->data, (int)bytes, MPI_BYTE,
              streams_rank(p, p->links[to].member), l->tag, MPI_COMM_WORLD,
              &s->request);
    d->moved++;
    return (ssize_t)bytes;
}

static ssize_t lines_recv(struct streams *p, int from, void *at, size_t bytes)
{
    struct lines *l = p->state;
    struct line *d = &l->in[from];
    if (d->n == 0 || present(d)->request != MPI_REQUEST_NULL)
        return 0;
    struct slot *s = present(d);
    size_t left = (size_t)s->bytes - s->at, n = bytes < left ? bytes : left;
    if (s->at == 0 || l->payload)
        memcpy(at, s->data + s->at, n);
    s->at += n;
    if (n == left) {
        s->at = 0;
        post(p, from, s);
        d->moved++;
    }
    return (ssize_t)n;
}

static void add_wanted(struct lines *to, struct streams *p)
{
    struct lines *l = p->state;
    for (int k = 0; k < p->n; k++)
        for (int in = 0; in < 2; in++) {
            struct line *d = in ? &l->in[k] : &l->out[k];
            unsigned want = in ? STREAMS_IN : STREAMS_OUT;
            if (d->n == 0 || !(p->links[k].wants & want))
                continue;
            to->of[to->n] = present(d);
            to->waits[to->n++] = present(d)->request;
        }
}

// Simulated messages always come, so there is no time limit; SimGrid itself
// ends a run in which all ranks wait.
static int lines_wait(struct streams *p, int timeout_ms)
{
    struct lines *l = p->state;
    MPI_Status status;
    int which;
    (void)timeout_ms;
    l->n = 0;
    add_wanted(l, p);
    if (p->beside)
        add_wanted(l, p->beside);
    MPI_Waitany(l->n, l->waits, &which, &status);
    if (which == MPI_UNDEFINED)
        return fail("%s: nothing to wait for", p->name);
    l->of[which]->request = MPI_REQUEST_NULL;
    MPI_Get_count(&status, MPI_BYTE, &l->of[which]->bytes);
    return 0;
}

static void line_close(const struct lines *l, struct line *d, bool in)
{
    for (int i = 0; i < d->n; i++) {
        struct slot *s = &d->slots[i];
        if (in && s->request != MPI_REQUEST_NULL) {
            MPI_Cancel(&s->request);
            MPI_Request_free(&s->request);
        } else if (!in) {
            MPI_Wait(&s->request, MPI_STATUS_IGNORE);
        }
        slot_free(l, s);
    }
}

static void lines_close(struct streams *p)
{
    struct lines *l = p->state;
    for (int in = 0; in < 2; in++)
        for (int k = 0; l->out && l->in && k < p->n; k++)
            line_close(l, in ? &l->in[k] : &l->out[k], in);
    mem_free(l->out);
    mem_free(l->in);
    mem_free(l->waits);
    mem_free(l->of);
}

#define LINES                                                                  \
    {                                                                          \
        .state_size = sizeof(struct lines), .hears_few = true,                 \
        .open = lines_open, .send = lines_send, .recv = lines_recv,            \
        .wait = lines_wait, .close = lines_close,                              \
    }

const struct streams_ops streams_mpi = LINES;
const struct streams_ops streams_mpi_stream = LINES;
