// calls.c - the calls of a rank. Each call begins with enter(), where a rank
// may die. A call gives up its turn only if it must wait.

#include "virtual/turns.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

int virtual_id(const struct virtual_rank *r)
{
    return r->id;
}

int virtual_ranks(const struct virtual_rank *r)
{
    return r->cluster->setup->ranks;
}

double virtual_now(const struct virtual_rank *r)
{
    return r->now;
}

static struct virtual_rank_result *result_of(const struct virtual_rank *r)
{
    return &r->cluster->result->rank[r->id];
}

// Records the message of a rank's first error. Returns -1.
static int failed(struct virtual_rank *r)
{
    struct virtual_rank_result *result = result_of(r);
    if (!result->error[0])
        snprintf(result->error, sizeof result->error, "%.250s", fail_message());
    return -1;
}

static size_t drop(struct virtual_rank *r, struct request *q, bool done)
{
    struct request **at = &r->requests;
    while (*at != q)
        at = &(*at)->next;
    *at = q->next;
    size_t bytes = network_bytes(&q->op);
    network_drop(r->cluster->network, &q->op, done, r->now);
    free(q);
    return bytes;
}

static int lost(struct virtual_rank *r)
{
    bool killed = result_of(r)->end == VIRTUAL_KILLED;
    fail("rank %d %s", r->id, killed ? "was killed" : "is stuck for good");
    return failed(r);
}

// Every call begins here. A rank that is to die in a call dies here. 0, or -1
// after fail() if the rank is lost.
static int enter(struct virtual_rank *r)
{
    const struct virtual_kill *kill = &r->cluster->setup->kill;
    if (r->lost)
        return lost(r);
    if (++result_of(r)->calls != kill->call || r->id != kill->rank)
        return 0;
    if (kill->closed)
        network_shut(r->cluster->network, r->id, r->now);
    turns_lose(r, VIRTUAL_KILLED);
    return lost(r);
}

static struct request *post(struct virtual_rank *r, struct network_op op)
{
    struct request *q = calloc(1, sizeof *q);
    if (!q) {
        fail("virtual: no memory for a request");
        return NULL;
    }
    q->op = op;
    q->op.rank = r->id;
    q->op.ready_s = r->now;
    if (network_post(r->cluster->network, &q->op)) {
        free(q);
        return NULL;
    }
    q->next = r->requests;
    r->requests = q;
    return q;
}

static const char *what(const struct network_op *op)
{
    return op->sends ? "sends to" : "receives from";
}

// Begins to send, or to receive.
static int begin(struct virtual_rank *r, struct network_op op,
                 struct virtual_req *req)
{
    int ranks = virtual_ranks(r);
    req->op = NULL;
    if (enter(r))
        return -1;
    if (op.peer < 0 || op.peer >= ranks) {
        fail("rank %d %s %d: the ranks are 0 to %d", r->id, what(&op), op.peer,
             ranks - 1);
    } else if (op.peer == r->id) {
        fail("rank %d %s itself: that would never end", r->id, what(&op));
    } else {
        if (!op.sends && op.bytes)
            memset(op.to, 0xff, op.bytes);
        req->op = post(r, op);
    }
    return req->op ? 0 : failed(r);
}

int virtual_stream(struct virtual_rank *r)
{
    return ++r->streams;
}

int virtual_isend_on(struct virtual_rank *r, int stream, int to, const void *p,
                     size_t bytes, struct virtual_req *req)
{
    const struct network_op op = {
        .peer = to, .stream = stream, .sends = true, .from = p, .bytes = bytes};
    return begin(r, op, req);
}

int virtual_irecv_on(struct virtual_rank *r, int stream, int from, void *p,
                     size_t bytes, struct virtual_req *req)
{
    const struct network_op op = {.peer = from,
                                  .stream = stream,
                                  .to = p,
                                  .bytes = bytes};
    return begin(r, op, req);
}

int virtual_isend(struct virtual_rank *r, int to, const void *p, size_t bytes,
                  struct virtual_req *req)
{
    return virtual_isend_on(r, 0, to, p, bytes, req);
}

int virtual_irecv(struct virtual_rank *r, int from, void *p, size_t bytes,
                  struct virtual_req *req)
{
    return virtual_irecv_on(r, 0, from, p, bytes, req);
}

static void await_until(struct virtual_rank *r, double until)
{
    r->until = until;
    r->waits = true;
    turns_take(r);
    r->waits = false;
}

static void await(struct virtual_rank *r)
{
    double deadline_s = r->cluster->setup->deadline_s;
    await_until(r, deadline_s > 0 ? r->now + deadline_s : INFINITY);
}

// Ends a request after the wait for it. 0, or -1 after fail().
static int settle(struct virtual_rank *r, struct request *q)
{
    const struct network_op op = q->op;
    bool done = op.done_s <= r->now && !op.closed;
    size_t bytes = drop(r, q, done);
    if (r->lost)
        return lost(r);
    if (op.peer == NETWORK_ANYBODY)
        return fail("rank %d receives from anybody: nothing within %g s", r->id,
                    r->cluster->setup->deadline_s);
    if (op.closed)
        return fail("rank %d %s %d (message %ld): its links are closed", r->id,
                    what(&op), op.peer, op.number);
    if (!done)
        return fail("rank %d %s %d (message %ld): not done within %g s", r->id,
                    what(&op), op.peer, op.number,
                    r->cluster->setup->deadline_s);
    if (op.any ? bytes > op.bytes : !op.sends && bytes != op.bytes)
        return fail("rank %d receives %zu bytes from %d (message %ld), which "
                    "sent %zu",
                    r->id, op.bytes, op.peer, op.number, bytes);
    return 0;
}

static struct request *find(struct virtual_rank *r, const void *op)
{
    struct request *q = r->requests;
    while (q && q != op)
        q = q->next;
    return q;
}

int virtual_wait(struct virtual_rank *r, struct virtual_req *req, int n)
{
    int err = enter(r);
    for (int i = 0; i < n; i++) {
        struct request *q = find(r, req[i].op);
        if (q)
            q->awaited = q->blamed = true;
        else if (req[i].op)
            err = fail("rank %d waits for request %d of %d, which is not under "
                       "way",
                       r->id, i, n);
    }
    if (!err)
        await(r);
    else
        failed(r);
    for (int i = 0; i < n; i++) {
        struct request *q = find(r, req[i].op);
        if (q && err) {
            drop(r, q, false);
            req[i].err = -1;
        } else {
            req[i].err = q && settle(r, q) ? failed(r) : 0;
        }
        req[i].op = NULL;
    }
    for (int i = 0; i < n; i++)
        err = err || req[i].err ? -1 : 0;
    return err;
}

bool virtual_is_done(const struct virtual_rank *r,
                     const struct virtual_req *req)
{
    const struct request *q = req->op;
    return r->lost || q->op.done_s <= r->now;
}

void virtual_cancel(struct virtual_rank *r, struct virtual_req *req)
{
    struct request *q = find(r, req->op);
    if (q)
        drop(r, q, false);
    req->op = NULL;
}

int virtual_wait_any(struct virtual_rank *r, const struct virtual_req *const *q,
                     int n, double seconds)
{
    bool done = false;
    if (enter(r))
        return -1;
    for (int i = 0; i < n; i++) {
        struct request *k = q[i]->op;
        k->awaited = true;
        k->blamed = i == 0;
    }
    r->any = true;
    await_until(r, r->now + seconds);
    r->any = false;
    for (int i = 0; i < n; i++) {
        struct request *k = q[i]->op;
        done = done || k->op.done_s <= r->now;
        k->awaited = k->blamed = false;
    }
    return r->lost ? lost(r) : done;
}

int virtual_recv_any(struct virtual_rank *r, int *from, size_t *bytes, void *p,
                     size_t most)
{
    if (enter(r))
        return -1;
    if (most)
        memset(p, 0xff, most);
    struct request *q = post(r, (struct network_op){.peer = NETWORK_ANYBODY,
                                                    .any = true,
                                                    .to = p,
                                                    .bytes = most});
    if (!q)
        return failed(r);
    q->awaited = q->blamed = true;
    await(r);
    *from = q->op.peer;
    *bytes = network_bytes(&q->op);
    return settle(r, q) ? failed(r) : 0;
}

void virtual_compute(struct virtual_rank *r, double seconds)
{
    const double *slow = r->cluster->setup->slow;
    if (!(seconds > 0) || r->lost)
        return;
    r->now += seconds * (slow ? slow[r->id] : 1);
    turns_take(r);
}

void *virtual_alloc(struct virtual_rank *r, size_t n, size_t size)
{
    struct virtual_rank_result *result = result_of(r);
    bool many = size && n > SIZE_MAX / 2 / size;
    size_t bytes = many ? 0 : n * size;
    struct block *b = malloc(sizeof *b);
    void *p = malloc(bytes ? bytes : 1);
    if (many || !b || !p) {
        free(p);
        free(b);
        fail("rank %d: %s %zu objects of %zu bytes", r->id,
             many ? "nobody has memory for" : "no memory for", n, size);
        failed(r);
        return NULL;
    }
    memset(p, 0xff, bytes);
    *b = (struct block){r->blocks, p};
    r->blocks = b;
    r->alloc += bytes;
    if (r->alloc > result->alloc_peak)
        result->alloc_peak = r->alloc;
    return p;
}

void virtual_release(struct virtual_rank *r)
{
    while (r->blocks) {
        struct block *b = r->blocks;
        r->blocks = b->next;
        free(b->p);
        free(b);
    }
    r->alloc = 0;
}
