// transport_virtual.c - the neighbours of a ring on a virtual cluster.

#include "horovod_ring/transport_virtual.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "cluster/virtual_cluster.h"
#include "horovod_ring/flow.h"

#include <math.h>

// No real time passes here. So a wait of at least this time ends at the
// cluster's deadline instead, which counts in virtual time.
enum { PATIENT_MS = 1000000 };

struct neighbours {
    struct virtual_line in[2], out[2]; // by side
    struct virtual_line *const *also;
    int nalso;
    const struct virtual_req **waits; // the requests of one wait()
    int *peers;                       // the peer of each of these
    double timeout_s;
    int missing;
};

static size_t payload(const void *head)
{
    const struct head *h = head;
    return h->bytes;
}

static int neighbours_open(struct transport *t, struct cluster *c,
                           const struct transport_config *config)
{
    struct neighbours *b = t->state;
    struct virtual_rank *r = cluster_virtual_rank(c);
    size_t most = 3 + 2 * (size_t)c->world;
    // Each direction has its own stream, since with two members the left and
    // the right neighbour are the same member.
    int rightward = virtual_stream(r), leftward = virtual_stream(r);
    (void)config;
    for (int side = 0; side < 2; side++) {
        bool right = side == RIGHT;
        b->out[side] =
            (struct virtual_line){.rank = r,
                                  .peer = t->peer[side],
                                  .stream = right ? rightward : leftward,
                                  .head_bytes = sizeof(struct head),
                                  .payload = payload};
        b->in[side] = b->out[side];
        b->in[side].stream = right ? leftward : rightward;
    }
    b->timeout_s = c->timeout_s;
    b->missing = -1;
    b->waits = mem_alloc(most, sizeof *b->waits);
    b->peers = b->waits ? mem_alloc(most, sizeof *b->peers) : NULL;
    return b->peers ? 0 : -1;
}

static ssize_t neighbours_send(struct transport *t, enum side to,
                               const struct iovec *v, int n)
{
    struct neighbours *b = t->state;
    return virtual_line_send(&b->out[to], v, n);
}

static ssize_t neighbours_recv(struct transport *t, enum side from, void *p,
                               size_t bytes)
{
    struct neighbours *b = t->state;
    return virtual_line_recv(&b->in[from], p, bytes);
}

static void add(struct neighbours *b, int *n, const struct virtual_line *l)
{
    b->waits[*n] = virtual_line_waits(l);
    b->peers[*n] = l->peer;
    *n += b->waits[*n] != NULL;
}

void transport_virtual_also(struct transport *t,
                            struct virtual_line *const *lines, int n)
{
    struct neighbours *b = t->state;
    b->also = lines;
    b->nalso = n;
}

int transport_virtual_missing(const struct transport *t)
{
    const struct neighbours *b = t->state;
    return b->missing;
}

// The order of `waits` decides which rank is blamed: reports of failures come
// last.
static int neighbours_wait(struct transport *t, unsigned wants, int timeout_ms)
{
    struct neighbours *b = t->state;
    bool patient = timeout_ms < 0 || timeout_ms >= PATIENT_MS;
    double most = b->timeout_s > 0 ? b->timeout_s : INFINITY;
    int n = 0;
    if (wants & WANT_SEND_RIGHT && !virtual_line_waits(&b->out[RIGHT]))
        return 0; // a send may begin
    if ((wants & WANT_RECV_LEFT && virtual_line_listen(&b->in[LEFT])) ||
        (wants & WANT_RECV_RIGHT && virtual_line_listen(&b->in[RIGHT])))
        return -1;
    for (int i = 0; i < b->nalso; i++)
        add(b, &n, b->also[i]);
    b->nalso = 0;
    if (wants & WANT_RECV_LEFT)
        add(b, &n, &b->in[LEFT]);
    if (wants & WANT_SEND_RIGHT)
        add(b, &n, &b->out[RIGHT]);
    if (wants & WANT_RECV_RIGHT)
        add(b, &n, &b->in[RIGHT]);
    CHECK(n > 0);
    int rc = virtual_wait_any(b->in[LEFT].rank, b->waits, n,
                              patient ? most : timeout_ms * 1e-3);
    if (rc || !patient)
        return rc < 0 ? -1 : 0;
    b->missing = b->peers[0];
    return fail("%s: nothing from rank %d for %g s", t->name, b->missing, most);
}

static void neighbours_wake(struct transport *t)
{
    (void)t; // a rank is one thread
}

static void neighbours_close(struct transport *t)
{
    struct neighbours *b = t->state;
    for (int side = 0; side < 2; side++) {
        virtual_line_close(&b->in[side]);
        virtual_line_close(&b->out[side]);
    }
    mem_free(b->waits);
    mem_free(b->peers);
}

const struct transport_ops transport_virtual = {
    .state_size = sizeof(struct neighbours),
    .open = neighbours_open,
    .send = neighbours_send,
    .recv = neighbours_recv,
    .wait = neighbours_wait,
    .wake = neighbours_wake,
    .close = neighbours_close,
};
