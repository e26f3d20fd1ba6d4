// group_simulated.c - does the verbs of group.h on simulated ranks.
//
// The ring is the one that trains: its flow and its pairs, over MPI's messages.
// The library is SimGrid's MPI, whose collectives block; smpirun is told their
// algorithms, and all ranks of MPI_COMM_WORLD are members.

#include "simulate/group_simulated.h"

#include "allreduce/operands.h"
#include "base/base.h"
#include "cluster/cluster.h"
#include "horovod_ring/ring_flow.h"
#include "simulate/exchange.h"

#include <string.h>

// ---- the links of a ring, or of pairs
//
// A call of send() becomes one message, or begins to if it is too long. In a
// ring receives are posted ahead. Without payload only heads are real. The rest
// is on pages that all ranks share, which SimGrid neither copies nor touches.

enum { IN_SLOTS = 3, PAGE = 4096, TAG = 1 };

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
    size_t most; // bytes of a message
    int ahead;   // messages under way to the right
    bool payload;
    int tag;
    struct line *out, *in; // by link
    MPI_Request *waits;    // the requests of one wait()
    struct slot **of;      // the slot of each
    int n;
};

static struct lines usual;

void simulated_messages(size_t most, int ahead, bool payload)
{
    CHECK(ahead <= IN_SLOTS);
    usual = (struct lines){.most = most + sizeof(struct head),
                           .ahead = ahead,
                           .payload = payload};
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
    int out = ring && k == LEFT ? 0 : l->ahead;
    int in = !ring ? l->ahead : k == LEFT ? IN_SLOTS : 0;
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
    *l = usual;
    l->tag = TAG + (int)config->who;
    l->out = mem_alloc(links, sizeof *l->out);
    l->in = mem_alloc(links, sizeof *l->in);
    l->waits = mem_alloc(most, sizeof *l->waits);
    l->of = mem_alloc(most, sizeof *l->of);
    if (!l->out || !l->in || !l->waits || !l->of)
        return -1;
    for (int k = 0; k < p->n; k++)
        if (p->links[k].member != p->rank &&
            (!config->star || k == 0 || p->rank == 0) && link_open(p, k))
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
    size_t most = 0, bytes = 0;
    for (int k = 0; k < n; k++)
        most += v[k].iov_len;
    if (most > l->most) // what is left is longer than a head
        most = l->most - sizeof(struct head);
    for (int k = 0; k < n; k++) {
        size_t left = most - bytes;
        size_t len = v[k].iov_len < left ? v[k].iov_len : left;
        if (l->payload || (k == 0 && len <= sizeof(struct head)))
            memcpy(s->data + bytes, v[k].iov_base, len);
        bytes += len;
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
    if (l->payload || (s->at == 0 && n <= sizeof(struct head)))
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

static const struct streams_ops streams_mpi = {
    .state_size = sizeof(struct lines),
    .hears_few = true,
    .open = lines_open,
    .send = lines_send,
    .recv = lines_recv,
    .wait = lines_wait,
    .close = lines_close,
};

// ---- the ring

static int ring_open(struct group *g)
{
    return ring_flow_open(g, &streams_mpi);
}

// Without payload there is nothing to add, and no memory for it.
REPLACES(wire_open);
int __wrap_wire_open(struct wire *w, size_t largest, size_t piece)
{
    return contents_travel() ? __real_wire_open(w, largest, piece) : 0;
}

REPLACES(wire_landed);
void __wrap_wire_landed(struct wire *w, const struct group_vector *v,
                        uint64_t k, struct group_chunk piece, bool adds,
                        bool completes)
{
    if (w->landing)
        __real_wire_landed(w, v, k, piece, adds, completes);
}

const struct group_ops ring_simulated = {
    .name = "simulated ring",
    .state_size = sizeof(struct ring_flow),
    .open = ring_open,
    .begin = ring_flow_begin,
    .advance = ring_flow_advance,
    .wait = ring_flow_wait,
    .abort = ring_flow_abort,
    .close = ring_flow_close,
};

// ---- the library

struct library {
    uint64_t done;
};

static int library_open(struct group *g)
{
    (void)g;
    return 0;
}

static int library_begin(struct group *g, const struct group_op *op)
{
    struct library *l = g->state;
    void *data = op->vector.data;
    int n = (int)op->vector.n, chunk = n / g->size;
    CHECK(op->vector.type == DTYPE_F32 && !group_casts(&op->vector));
    operands_count(g, op);
    l->done++;
    if (op->verb == GROUP_ALL_REDUCE) {
        MPI_Allreduce(MPI_IN_PLACE, data, n, MPI_FLOAT, MPI_SUM,
                      MPI_COMM_WORLD);
        return 0;
    }
    CHECK(chunk * g->size == n); // messages of one length
    if (op->verb == GROUP_ALL_TO_ALL)
        MPI_Alltoall(op->given.data, chunk, MPI_FLOAT, data, chunk, MPI_FLOAT,
                     MPI_COMM_WORLD);
    else
        MPI_Allgather(MPI_IN_PLACE, 0, MPI_FLOAT, data, chunk, MPI_FLOAT,
                      MPI_COMM_WORLD);
    return 0;
}

static int library_advance(struct group *g, uint64_t *done)
{
    const struct library *l = g->state;
    *done = l->done;
    return 0;
}

static int library_wait(struct group *g)
{
    (void)g;
    return 0;
}

static void library_close(struct group *g)
{
    (void)g;
}

const struct group_ops library_simulated = {
    .name = "simulated MPI",
    .library = true,
    .state_size = sizeof(struct library),
    .open = library_open,
    .begin = library_begin,
    .advance = library_advance,
    .wait = library_wait,
    .close = library_close,
};
