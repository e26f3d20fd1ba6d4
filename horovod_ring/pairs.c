// pairs.c - messages from one member to another: send, recv and all_to_all.

#include "horovod_ring/pairs.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "device/vector.h"

enum { SCRATCH = 1 << 16 }; // bytes

static int open_line(struct pair_line *l, size_t depth, bool half)
{
    l->queue = mem_alloc(depth, sizeof *l->queue);
    l->scratch = half ? mem_alloc(SCRATCH, 1) : NULL;
    return l->queue && (l->scratch || !half) ? 0 : -1;
}

int pairs_open(struct pairs *p, const struct pairs_ops *ops, const char *name,
               struct cluster *c, const char *iface, size_t depth, bool half)
{
    *p = (struct pairs){.ops = ops,
                        .name = name,
                        .rank = c->rank,
                        .world = c->world,
                        .ranks = c->ranks,
                        .depth = depth,
                        .culprit = -1};
    for (int d = 0; d < 2; d++) {
        p->lines[d] = mem_alloc((size_t)c->world, sizeof *p->lines[d]);
        if (!p->lines[d])
            return -1;
        for (int r = 0; r < c->world; r++)
            if (r != c->rank && open_line(&p->lines[d][r], depth, half))
                return -1;
    }
    p->state = mem_alloc(1, ops->state_size);
    return p->state ? ops->open(p, c, iface) : -1;
}

void pairs_close(struct pairs *p)
{
    if (p->state)
        p->ops->close(p);
    for (int d = 0; d < 2; d++) {
        for (int r = 0; p->lines[d] && r < p->world; r++) {
            mem_free(p->lines[d][r].queue);
            mem_free(p->lines[d][r].scratch);
        }
        mem_free(p->lines[d]);
    }
    mem_free(p->state);
    *p = (struct pairs){0};
}

// The rank in the whole job, by which error messages name a member.
static int job_rank(const struct pairs *p, int member)
{
    return cluster_job_rank(p->ranks, member);
}

// ---- lines

static const struct pair_message *present(const struct pairs *p,
                                          const struct pair_line *l)
{
    return &l->queue[l->done % p->depth];
}

void pairs_post(struct pairs *p, enum direction d, int peer,
                const struct pair_message *m)
{
    struct pair_line *l = &p->lines[d][peer];
    if (p->pending++ == 0)
        p->moved_ns = now_ns();
    l->queue[l->posted++ % p->depth] = *m;
}

int pairs_awaited(const struct pairs *p, const uint64_t *left)
{
    for (int d = 0; d < 2; d++)
        for (int r = 0; r < p->world; r++) {
            const struct pair_line *l = &p->lines[d][r];
            if (l->done < l->posted && present(p, l)->left == left)
                return r;
        }
    return -1;
}

bool pairs_wants(const struct pairs *p, enum direction d, int rank)
{
    const struct pair_line *l = &p->lines[d][rank];
    bool pends = l->done < l->posted;
    return d == OUT ? pends
                    : !l->closed && (pends || l->moved < sizeof l->head);
}

static uint64_t payload(const struct group_vector *v)
{
    return v->n * dtype_bytes(v->wire);
}

// Returns where byte `at` of a message's payload is. *bytes becomes the number
// of payload bytes from there on without a gap.
static char *payload_at(const struct pair_line *l, const struct group_vector *v,
                        size_t at, size_t *bytes)
{
    size_t left = payload(v) - at, skip = at % SCRATCH;
    if (!group_casts(v)) {
        *bytes = left;
        return (char *)v->data + at;
    }
    *bytes = left < SCRATCH - skip ? left : SCRATCH - skip;
    return l->scratch + skip;
}

// Casts the piece that begins at byte `at`, between `scratch` and the vector.
static void cast(const struct pair_line *l, const struct group_vector *v,
                 size_t at, enum direction d)
{
    size_t left = payload(v) - at, n = (left < SCRATCH ? left : SCRATCH) / 2;
    float *data = (float *)v->data + at / 2;
    if (d == OUT)
        vector_cast(l->scratch, v->wire, data, v->type, n);
    else
        vector_cast(data, v->type, l->scratch, v->wire, n);
}

static void complete(struct pairs *p, enum direction d, struct pair_line *l)
{
    struct group_stats *s = &p->counted;
    const struct pair_message *m = present(p, l);
    group_count(s, m->verb, d == OUT ? l->head.bytes : 0,
                d == OUT ? 0 : l->head.bytes);
    --*m->left;
    *(d == OUT ? &s->head_out : &s->head_in) += sizeof l->head;
    l->moved = l->cast = 0;
    l->done++;
    p->pending--;
}

// Send a part of the present message. Returns 1 if bytes moved, 0 if not, -1
// after fail() if the receiver is lost.
static int push(struct pairs *p, int to)
{
    struct pair_line *l = &p->lines[OUT][to];
    const struct group_vector *v = &present(p, l)->vector;
    struct iovec parts[2];
    int n = 0;
    size_t head = sizeof l->head;
    if (l->done == l->posted)
        return 0;
    if (l->moved == 0)
        l->head = (struct pair_head){.kind = PAIR_MESSAGE,
                                     .number = (uint32_t)l->done,
                                     .bytes = payload(v)};
    if (l->moved < head)
        parts[n++] =
            (struct iovec){(char *)&l->head + l->moved, head - l->moved};
    size_t at = l->moved < head ? 0 : l->moved - head, bytes;
    if (group_casts(v) && at == l->cast && at < l->head.bytes) {
        cast(l, v, at, OUT);
        l->cast += l->head.bytes - at < SCRATCH ? l->head.bytes - at : SCRATCH;
    }
    char *from = payload_at(l, v, at, &bytes);
    if (bytes > 0)
        parts[n++] = (struct iovec){from, bytes};
    ssize_t sent = p->ops->send(p, to, parts, n);
    if (sent < 0)
        p->culprit = to;
    if (sent <= 0)
        return (int)sent;
    l->moved += (size_t)sent;
    if (l->moved == head + l->head.bytes)
        complete(p, OUT, l);
    return 1;
}

static int lost(struct pairs *p, int from, size_t got)
{
    p->culprit = from;
    return fail("%s after %zu bytes of its message %llu", fail_message(), got,
                (unsigned long long)p->lines[IN][from].done);
}

// Receive a part of a head. Returns 1 if bytes moved, 0 if not, -1 after
// fail().
static int pull_head(struct pairs *p, int from)
{
    struct pair_line *l = &p->lines[IN][from];
    ssize_t got = p->ops->recv(p, from, (char *)&l->head + l->moved,
                               sizeof l->head - l->moved);
    if (got < 0 && l->done == l->posted && l->moved == 0) {
        l->closed = true; // no message is expected from there
        return 0;
    }
    if (got < 0)
        return lost(p, from, l->moved);
    l->moved += (size_t)got;
    if (l->moved < sizeof l->head)
        return got > 0;
    if (l->head.kind == PAIR_ABORT && l->head.number < (uint32_t)p->world) {
        p->culprit = (int)l->head.number;
        return fail("%s: rank %d failed, says rank %d", p->name,
                    job_rank(p, p->culprit), job_rank(p, from));
    }
    if (l->head.kind == PAIR_MESSAGE)
        return 1;
    p->culprit = from;
    return fail("%s: rank %d sent bytes that are no message", p->name,
                job_rank(p, from));
}

static int check_head(struct pairs *p, int from)
{
    const struct pair_line *l = &p->lines[IN][from];
    uint64_t due = payload(&present(p, l)->vector);
    if (l->head.number == (uint32_t)l->done && l->head.bytes == due)
        return 0;
    p->culprit = from;
    return fail("%s: rank %d sent message %u of %llu bytes; expected message "
                "%llu of %llu bytes",
                p->name, job_rank(p, from), l->head.number,
                (unsigned long long)l->head.bytes, (unsigned long long)l->done,
                (unsigned long long)due);
}

// Receive a part of the present message, its head included.
static int pull(struct pairs *p, int from)
{
    struct pair_line *l = &p->lines[IN][from];
    size_t head = sizeof l->head;
    if (l->closed && l->done < l->posted) {
        p->culprit = from;
        return fail("%s: rank %d closed", p->name, job_rank(p, from));
    }
    if (l->closed)
        return 0;
    if (l->moved < head)
        return pull_head(p, from);
    if (l->done == l->posted)
        return 0;
    const struct group_vector *v = &present(p, l)->vector;
    size_t at = l->moved - head, bytes;
    if (at == 0 && check_head(p, from))
        return -1;
    char *to = payload_at(l, v, at, &bytes);
    ssize_t got = bytes > 0 ? p->ops->recv(p, from, to, bytes) : 0;
    if (got < 0)
        return lost(p, from, at);
    l->moved += (size_t)got;
    if (group_casts(v) && got > 0 && (size_t)got == bytes) {
        cast(l, v, l->cast, IN);
        l->cast = at + bytes;
    }
    if (l->moved == head + l->head.bytes) {
        complete(p, IN, l);
        return 1;
    }
    return got > 0;
}

int pairs_advance(struct pairs *p)
{
    bool listens = p->listens;
    p->listens = false;
    for (bool moved = p->pending > 0; moved;) {
        moved = false;
        for (int r = 0; r < p->world; r++) {
            const struct pair_line *in = &p->lines[IN][r];
            if (r == p->rank)
                continue;
            int out = push(p, r);
            int came =
                out >= 0 && (listens || in->done < in->posted) ? pull(p, r) : 0;
            if (out < 0 || came < 0)
                return -1;
            moved |= out || came;
        }
        p->moves += moved;
        if (moved)
            p->moved_ns = now_ns();
    }
    return 0;
}

void pairs_abort(struct pairs *p)
{
    int culprit = p->culprit < 0 ? p->rank : p->culprit;
    struct pair_head h = {.kind = PAIR_ABORT, .number = (uint32_t)culprit};
    struct iovec v = {&h, sizeof h};
    // From here on errors are ignored: no member is left to report them to. A
    // member to which a message is half sent only sees that this one closes.
    for (int r = 0; r < p->world; r++)
        if (r != p->rank && r != culprit && p->lines[OUT][r].moved == 0)
            (void)p->ops->send(p, r, &v, 1);
}
