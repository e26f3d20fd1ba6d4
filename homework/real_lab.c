// real_lab.c - labs on real workers: lab.h's calls use group.h's send and recv.

#include "homework/real_lab.h"

#include "labs/ops.h"

#include "base/base.h"

#include <string.h>

struct chunk { // of lab_alloc()
    struct chunk *next;
    void *memory;
};

struct real {
    struct lab lab;
    struct group *group;
    uint64_t begun, waited; // the last ticket, and the last complete one
    struct chunk *chunks;
};

// Posts one message. Its ticket goes into *req.
static int post(struct lab *l, bool out, int peer, const void *p, size_t bytes,
                struct lab_req *req)
{
    struct real *r = l->state;
    struct group_vector v = group_bytes((void *)p, bytes);
    uint64_t ticket;
    *req = (struct lab_req){NULL, -1};
    if (peer < 0 || peer >= l->workers || peer == l->rank)
        return fail("rank %d %s rank %d; try: another rank, 0 to %d", l->rank,
                    out ? "sends to" : "receives from", peer, l->workers - 1);
    if (r->begun - r->waited == LAB_REQUESTS)
        return fail("rank %d: more than %d messages under way; try: "
                    "lab_wait() for those begun",
                    l->rank, LAB_REQUESTS);
    if (out ? group_send(r->group, &v, peer, &ticket)
            : group_recv(r->group, &v, peer, &ticket))
        return -1;
    r->begun = ticket;
    *req = (struct lab_req){(void *)(uintptr_t)ticket, 0};
    return 0;
}

static int real_isend(struct lab *l, int to, const void *p, size_t bytes,
                      struct lab_req *req)
{
    return post(l, true, to, p, bytes, req);
}

static int real_irecv(struct lab *l, int from, void *p, size_t bytes,
                      struct lab_req *req)
{
    return post(l, false, from, p, bytes, req);
}

static int await(struct real *r, uint64_t ticket)
{
    if (ticket <= r->waited)
        return 0;
    if (group_await(r->group, ticket))
        return -1;
    r->waited = ticket;
    return 0;
}

static int real_wait(struct lab *l, struct lab_req *req, int n)
{
    struct real *r = l->state;
    int err = 0;
    for (int i = 0; i < n; i++) {
        uint64_t ticket = (uintptr_t)req[i].op; // 0: the request never began
        if (ticket)
            req[i] = (struct lab_req){NULL, await(r, ticket)};
        err = req[i].err ? -1 : err;
    }
    return err;
}

static int real_recv_any(struct lab *l, struct lab_note *n, void *p,
                         size_t most)
{
    (void)n;
    (void)p;
    (void)most;
    return fail("rank %d: lab_recv_any() works only on the virtual cluster; "
                "try: lab_irecv() from each rank",
                l->rank);
}

static double real_now(const struct lab *l)
{
    (void)l;
    return (double)now_ns() * 1e-9;
}

static void real_compute(struct lab *l, double seconds)
{
    (void)l;
    (void)seconds;
}

static void *real_alloc(struct lab *l, size_t n, size_t size)
{
    struct real *r = l->state;
    struct chunk *c = mem_alloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->memory = mem_alloc(n ? n : 1, size);
    if (!c->memory) {
        mem_free(c);
        return NULL;
    }
    memset(c->memory, 0xff, n * size); // NaN in every format
    c->next = r->chunks;
    r->chunks = c;
    return c->memory;
}

static int real_missing(struct lab *l, int rank, const char *why)
{
    return fail("rank %d misses rank %d: %s: %s", l->rank, rank, why,
                fail_message());
}

static const struct lab_ops real_ops = {
    .isend = real_isend,
    .irecv = real_irecv,
    .wait = real_wait,
    .recv_any = real_recv_any,
    .now = real_now,
    .compute = real_compute,
    .alloc = real_alloc,
    .missing = real_missing,
};

struct real *real_open(struct group *g)
{
    struct real *r = mem_alloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->group = g;
    r->lab = (struct lab){.rank = g->rank,
                          .workers = g->size,
                          .ops = &real_ops,
                          .state = r};
    return r;
}

struct lab *real_lab(struct real *r)
{
    return &r->lab;
}

int real_sum(struct real *r, float *v, size_t n)
{
    struct group_vector all = group_floats(v, n);
    return group_all_reduce(r->group, &all, &r->begun) ? -1
                                                       : await(r, r->begun);
}

static void release(struct real *r)
{
    while (r->chunks) {
        struct chunk *c = r->chunks;
        r->chunks = c->next;
        mem_free(c->memory);
        mem_free(c);
    }
}

int real_finish(struct real *r)
{
    int err = await(r, r->begun);
    release(r);
    return err;
}

void real_close(struct real **r)
{
    if (*r)
        release(*r);
    mem_free(*r);
    *r = NULL;
}
