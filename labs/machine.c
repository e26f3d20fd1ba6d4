// machine.c - the calls of lab.h on the virtual cluster of virtual.h.

#include "labs/machine.h"

#include "base/base.h"

static int others(const struct lab *l)
{
    const struct lab_machine *m = l->state;
    return m->others;
}

static struct virtual_rank *rank_of(const struct lab *l)
{
    const struct lab_machine *m = l->state;
    return m->rank;
}

// A rank's number on the cluster. Another thread's ranks cannot be reached.
static int peer_of(const struct lab *l, int peer)
{
    int ranks = l->workers + l->servers;
    bool thread = peer >= 0 && peer < ranks;
    int past = peer < 0 ? 0 : virtual_ranks(rank_of(l)) - ranks;
    return peer + (thread ? others(l) : past);
}

// Reads both ends of a buffer. So a wrong buffer crashes in the student's call,
// and not later when the message is copied.
static void touch(const void *p, size_t bytes)
{
    const volatile char *c = p;
    if (bytes)
        (void)(c[0] + c[bytes - 1]);
}

static int machine_isend(struct lab *l, int to, const void *p, size_t bytes,
                         struct lab_req *r)
{
    struct virtual_req q;
    touch(p, bytes);
    int err = virtual_isend(rank_of(l), peer_of(l, to), p, bytes, &q);
    *r = (struct lab_req){q.op, err};
    return err;
}

static int machine_irecv(struct lab *l, int from, void *p, size_t bytes,
                         struct lab_req *r)
{
    struct virtual_req q;
    int err = virtual_irecv(rank_of(l), peer_of(l, from), p, bytes, &q);
    *r = (struct lab_req){q.op, err};
    return err;
}

static int machine_wait(struct lab *l, struct lab_req *r, int n)
{
    struct virtual_req q[LAB_REQUESTS];
    if (n < 0 || n > LAB_REQUESTS)
        return fail("rank %d waits for %d messages in one lab_wait(); try: at "
                    "most %d",
                    l->rank, n, LAB_REQUESTS);
    for (int i = 0; i < n; i++)
        q[i].op = r[i].op;
    int err = virtual_wait(rank_of(l), q, n);
    for (int i = 0; i < n; i++)
        r[i] = (struct lab_req){q[i].op, q[i].err};
    return err;
}

static int machine_recv_any(struct lab *l, struct lab_note *n, void *p,
                            size_t most)
{
    int err = virtual_recv_any(rank_of(l), &n->from, &n->bytes, p, most);
    n->from -= others(l);
    return err;
}

static double machine_now(const struct lab *l)
{
    return virtual_now(rank_of(l));
}

static void machine_compute(struct lab *l, double seconds)
{
    virtual_compute(rank_of(l), seconds);
}

static void *machine_alloc(struct lab *l, size_t n, size_t size)
{
    return virtual_alloc(rank_of(l), n, size);
}

static int machine_missing(struct lab *l, int rank, const char *why)
{
    const struct lab_machine *m = l->state;
    if (*m->missing < 0)
        *m->missing = rank;
    return fail("rank %d misses rank %d: %s", l->rank, rank, why);
}

const struct lab_ops lab_machine_ops = {
    .isend = machine_isend,
    .irecv = machine_irecv,
    .wait = machine_wait,
    .recv_any = machine_recv_any,
    .now = machine_now,
    .compute = machine_compute,
    .alloc = machine_alloc,
    .missing = machine_missing,
};
