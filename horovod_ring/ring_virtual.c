// ring_virtual.c - does the verbs of group.h with our ring on a virtual
// cluster: all members are in one process, on the clock of a model
// (virtual/virtual.h).
//
// Plan, flow, slices, sums, law and error messages are those of ring_tcp. The
// cluster must be a cluster_virtual().

#include "horovod_ring/carriers.h"

#include "horovod_ring/ring_flow.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "cluster/virtual_cluster.h"
#include "virtual/line.h"

#include <math.h>

// No real time passes while a member waits. So a wait of PATIENT_MS or more
// ends at the cluster's deadline instead, which counts in virtual time: then it
// fails, and names the member that did not answer.
enum { PATIENT_MS = 1000000 };
static const double no_deadline_s = 1e6; // of the flow: its waits are patient

// ---- links between members

struct lines {
    struct virtual_line *in, *out;    // by link
    const struct virtual_req **waits; // the requests of one wait()
    int *members;                     // the other member of each of these
    int n;                            // how many there are
    double timeout_s;
};

static size_t payload(const void *head)
{
    const struct head *h = head;
    return (size_t)h->bytes;
}

// The member that calls sends on the first of two streams, and the other one
// sends on the second. With two members the LEFT and the RIGHT link have the
// same members.
static int lines_open(struct streams *p, struct cluster *c,
                      const struct streams_config *config)
{
    struct lines *s = p->state;
    struct virtual_rank *rank = cluster_virtual_rank(c);
    size_t links = (size_t)p->n, most = 2 * (links + (size_t)p->world);
    int calls = virtual_stream(rank), answers = virtual_stream(rank);
    (void)config;
    s->timeout_s = c->timeout_s;
    s->in = mem_alloc(links, sizeof *s->in);
    s->out = mem_alloc(links, sizeof *s->out);
    s->waits = mem_alloc(most, sizeof *s->waits);
    s->members = mem_alloc(most, sizeof *s->members);
    if (!s->in || !s->out || !s->waits || !s->members)
        return -1;
    for (int k = 0; k < p->n; k++) {
        const struct streams_link *l = &p->links[k];
        s->out[k] = (struct virtual_line){.rank = rank,
                                          .peer = l->member,
                                          .stream = l->calls ? calls : answers,
                                          .head_bytes = sizeof(struct head),
                                          .payload = payload};
        s->in[k] = s->out[k];
        s->in[k].stream = l->calls ? answers : calls;
    }
    return 0;
}

static ssize_t lines_send(struct streams *p, int link, const struct iovec *v,
                          int n)
{
    const struct lines *s = p->state;
    return virtual_line_send(&s->out[link], v, n);
}

static ssize_t lines_recv(struct streams *p, int link, void *at, size_t bytes)
{
    const struct lines *s = p->state;
    return virtual_line_recv(&s->in[link], at, bytes);
}

static void add(struct lines *to, const struct virtual_line *l)
{
    to->waits[to->n] = virtual_line_waits(l);
    to->members[to->n] = l->peer;
    to->n += to->waits[to->n] != NULL;
}

// Adds the requests on links with one of `wants`. Returns 0, or -1 after
// fail(); 1 if a send may begin.
static int add_wanted(struct lines *to, const struct streams *p, unsigned wants)
{
    const struct lines *s = p->state;
    for (int k = 0; k < p->n; k++) {
        unsigned w = p->links[k].wants & wants;
        if (w & (STREAMS_IN | STREAMS_HEAR)) {
            if (virtual_line_listen(&s->in[k]))
                return -1;
            add(to, &s->in[k]);
        }
        if (w & STREAMS_OUT && !virtual_line_waits(&s->out[k]))
            return 1;
        if (w & STREAMS_OUT)
            add(to, &s->out[k]);
    }
    return 0;
}

// The order of `waits` decides which member is blamed: reports of failures come
// last.
static int add_all(struct streams *p)
{
    struct lines *s = p->state;
    int rc = 0;
    s->n = 0;
    for (int reports = 0; !rc && reports < 2; reports++) {
        unsigned wants = reports ? STREAMS_HEAR : STREAMS_IN | STREAMS_OUT;
        rc = p->beside ? add_wanted(s, p->beside, wants) : 0;
        rc = rc ? rc : add_wanted(s, p, wants);
    }
    return rc;
}

static int lines_wait(struct streams *p, int timeout_ms)
{
    struct lines *s = p->state;
    bool patient = timeout_ms >= PATIENT_MS;
    double most = s->timeout_s > 0 ? s->timeout_s : INFINITY;
    int rc = add_all(p);
    if (rc)
        return rc < 0 ? -1 : 0;
    CHECK(s->n > 0);
    rc = virtual_wait_any(s->in[0].rank, s->waits, s->n,
                          patient ? most : timeout_ms * 1e-3);
    if (rc || !patient)
        return rc < 0 ? -1 : 0;
    p->culprit = s->members[0];
    return fail("%s: nothing from rank %d for %g s", p->name, p->culprit, most);
}

static void lines_close(struct streams *p)
{
    struct lines *s = p->state;
    for (int k = 0; s->in && s->out && k < p->n; k++) {
        if (s->out[k].rank)
            virtual_line_close(&s->out[k]);
        if (s->in[k].rank)
            virtual_line_close(&s->in[k]);
    }
    mem_free(s->in);
    mem_free(s->out);
    mem_free(s->waits);
    mem_free(s->members);
}

static const struct streams_ops streams_virtual = {
    .state_size = sizeof(struct lines),
    .hears_few = true,
    .open = lines_open,
    .send = lines_send,
    .recv = lines_recv,
    .wait = lines_wait,
    .close = lines_close,
};

// ---- the carrier

static int ring_open(struct group *g)
{
    struct ring_flow *r = g->state;
    int rc = ring_flow_open(g, &streams_virtual);
    r->flow.timeout_s = no_deadline_s;
    return rc;
}

const struct group_ops ring_virtual = {
    .name = "virtual",
    .state_size = sizeof(struct ring_flow),
    .open = ring_open,
    .begin = ring_flow_begin,
    .advance = ring_flow_advance,
    .wait = ring_flow_wait,
    .abort = ring_flow_abort,
    .close = ring_flow_close,
};
