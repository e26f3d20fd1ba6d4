// pairs.c - messages from one member to another, and their order among a
// group's verbs.

#include "horovod_ring/pairs.h"

#include "base/base.h"
#include "device/vector.h"

enum { SCRATCH = 1 << 16 }; // bytes

static int open_line(struct pair_line *l, size_t depth, bool half)
{
    l->queue = mem_alloc(depth, sizeof *l->queue);
    l->scratch = half ? mem_alloc(SCRATCH, 1) : NULL;
    return l->queue && (l->scratch || !half) ? 0 : -1;
}

int pairs_open(struct pairs *p, const struct streams_ops *ops,
               const struct group *g)
{
    const struct group_job *job = &g->job;
    const struct streams_config config = {.name = g->name,
                                          .iface = job->iface,
                                          .who = STREAMS_ALL,
                                          .star = job->star};
    *p = (struct pairs){.streams.culprit = -1,
                        .depth = job->depth,
                        .grain = job->grain};
    if (!job->pairs)
        return 0;
    p->streams.world = g->size; // also if streams_open() is never reached
    p->verbs = mem_alloc(job->depth, sizeof *p->verbs);
    if (!p->verbs)
        return -1;
    for (int d = 0; d < 2; d++) {
        p->lines[d] = mem_alloc((size_t)g->size, sizeof *p->lines[d]);
        if (!p->lines[d])
            return -1;
        for (int r = 0; r < (job->star && g->rank > 0 ? 1 : g->size); r++)
            if (r != g->rank &&
                open_line(&p->lines[d][r], job->depth, job->largest > 0))
                return -1;
    }
    return streams_open(&p->streams, ops, job->cluster, &config);
}

void pairs_close(struct pairs *p)
{
    int world = p->streams.world;
    streams_close(&p->streams);
    for (int d = 0; d < 2; d++) {
        for (int r = 0; p->lines[d] && r < world; r++) {
            mem_free(p->lines[d][r].queue);
            mem_free(p->lines[d][r].scratch);
        }
        mem_free(p->lines[d]);
    }
    mem_free(p->verbs);
    *p = (struct pairs){.streams.culprit = -1};
}

// ---- lines

static const struct pair_message *present(const struct pairs *p,
                                          const struct pair_line *l)
{
    return &l->queue[l->done % p->depth];
}

static bool pends(const struct pairs *p, enum direction d, int rank)
{
    const struct pair_line *l = &p->lines[d][rank];
    return l->done < l->posted;
}

static void post_message(struct pairs *p, struct ticket *k, enum direction d,
                         int peer, const struct group_vector *v)
{
    struct pair_line *l = &p->lines[d][peer];
    CHECK(l->queue != NULL); // a star has only member 0's
    if (p->pending++ == 0)
        p->moved_ns = now_ns();
    k->left++;
    l->queue[l->posted++ % p->depth] = (struct pair_message){*v, k};
}

// Chunk r of a vector travels to or from member r.
static void post_chunk(struct pairs *p, struct ticket *k, enum direction d,
                       int r, const struct group_vector *v)
{
    struct group_chunk c = group_chunk_of(v, p->grain, p->streams.world, r);
    struct group_vector part = *v;
    part.data = group_at(v, c.off);
    part.n = c.n;
    post_message(p, k, d, r, &part);
}

bool pairs_post(struct pairs *p, const struct group_op *op)
{
    if (!p->verbs)
        return false;
    struct ticket *k = &p->verbs[p->posted++ % p->depth];
    *k = (struct ticket){.op = *op};
    if (group_is_pair(op->verb))
        post_message(p, k, op->verb == GROUP_SEND ? OUT : IN, op->peer,
                     &op->vector);
    else if (op->verb == GROUP_ALL_TO_ALL)
        for (int i = 1; i < p->streams.world; i++) {
            int r = (p->streams.rank + i) % p->streams.world;
            post_chunk(p, k, OUT, r, &op->given);
            post_chunk(p, k, IN, r, &op->vector);
        }
    else
        k->number = p->vectors++;
    return group_needs_pairs(op->verb);
}

int pairs_awaited(const struct pairs *p, enum group_verb *verb)
{
    if (p->done == p->posted)
        return -1;
    const struct ticket *first = &p->verbs[p->done % p->depth];
    *verb = first->op.verb;
    for (int d = 0; d < 2; d++)
        for (int r = 0; r < p->streams.world; r++)
            if (pends(p, d, r) && present(p, &p->lines[d][r])->verb == first)
                return r;
    return -1;
}

// From a member of which nothing is due only the head of a report may come.
void pairs_want(struct pairs *p)
{
    bool few = p->streams.ops->hears_few;
    for (int r = 0; r < p->streams.world; r++) {
        const struct pair_line *in = &p->lines[IN][r];
        bool out = pends(p, OUT, r), due = !in->closed && pends(p, IN, r);
        bool hear = !due && !in->closed && in->moved < sizeof in->head &&
                    (out || !few) && r != p->streams.rank;
        p->streams.links[r].wants = (due ? STREAMS_IN : 0) |
                                    (out ? STREAMS_OUT : 0) |
                                    (hear ? STREAMS_HEAR : 0);
    }
    p->listens = p->streams.ops->wait != NULL;
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
    group_count(s, m->verb->op.verb, d == OUT ? l->head.bytes : 0,
                d == OUT ? 0 : l->head.bytes);
    m->verb->left--;
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
    struct iovec parts[2];
    int n = 0;
    size_t head = sizeof l->head;
    if (l->done == l->posted)
        return 0;
    const struct group_vector *v = &present(p, l)->vector;
    if (l->moved == 0)
        l->head = (struct head){.kind = HEAD_MESSAGE,
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
    ssize_t sent = p->streams.ops->send(&p->streams, to, parts, n);
    if (sent < 0)
        p->streams.culprit = to;
    if (sent <= 0)
        return (int)sent;
    l->moved += (size_t)sent;
    if (l->moved == head + l->head.bytes)
        complete(p, OUT, l);
    return 1;
}

static int lost(struct pairs *p, int from, size_t got)
{
    p->streams.culprit = from;
    return fail("%s after %zu bytes of its message %llu", fail_message(), got,
                (unsigned long long)p->lines[IN][from].done);
}

// Receive a part of a head. Returns 1 if bytes moved, 0 if not, -1 after
// fail().
static int pull_head(struct pairs *p, int from)
{
    struct pair_line *l = &p->lines[IN][from];
    ssize_t got =
        p->streams.ops->recv(&p->streams, from, (char *)&l->head + l->moved,
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
    return streams_check(&p->streams, from, &l->head, HEAD_MESSAGE) ? -1 : 1;
}

static int check_head(struct pairs *p, int from)
{
    const struct pair_line *l = &p->lines[IN][from];
    uint64_t due = payload(&present(p, l)->vector);
    if (l->head.number == (uint32_t)l->done && l->head.bytes == due)
        return 0;
    p->streams.culprit = from;
    return fail("%s: rank %d sent message %u of %llu bytes; expected message "
                "%llu of %llu bytes",
                p->streams.name, streams_rank(&p->streams, from),
                l->head.number, (unsigned long long)l->head.bytes,
                (unsigned long long)l->done, (unsigned long long)due);
}

// Receive a part of the present message, its head included.
static int pull(struct pairs *p, int from)
{
    struct pair_line *l = &p->lines[IN][from];
    size_t head = sizeof l->head;
    if (l->closed && l->done < l->posted) {
        p->streams.culprit = from;
        return fail("%s: rank %d closed", p->streams.name,
                    streams_rank(&p->streams, from));
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
    ssize_t got =
        bytes > 0 ? p->streams.ops->recv(&p->streams, from, to, bytes) : 0;
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

static int move_messages(struct pairs *p)
{
    bool listens = p->listens;
    p->listens = false;
    for (bool moved = p->pending > 0; moved;) {
        moved = false;
        for (int r = 0; r < p->streams.world; r++) {
            const struct pair_line *in = &p->lines[IN][r];
            if (r == p->streams.rank)
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

int pairs_advance(struct pairs *p, uint64_t vectors, uint64_t *done)
{
    if (move_messages(p))
        return -1;
    for (; p->done < p->posted; p->done++) {
        const struct ticket *k = &p->verbs[p->done % p->depth];
        if (group_needs_pairs(k->op.verb) ? k->left > 0 : k->number >= vectors)
            break;
    }
    *done = p->verbs ? p->done : vectors;
    return 0;
}

void pairs_abort(struct pairs *p)
{
    // A member to which a message is half sent only sees that this one closes.
    for (int r = 0; r < p->streams.world; r++)
        if (r != p->streams.rank && p->lines[OUT][r].moved == 0)
            streams_abort(&p->streams, r);
}
