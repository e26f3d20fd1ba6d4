// group_world.c - worlds of members, for the cases that every carrier must
// pass.

#include "tests/group_cases.h"

#include "base/base.h"
#include "base/rng.h"

#include <string.h>

enum { GUARD = 64, PATTERN = 0xa5 };

struct group *member_open(const struct member *m, const char *name)
{
    struct group_job job = {
        .name = name,
        .cluster = m->cluster,
        .dev = m->dev,
        .grain = m->setup->grain,
        .largest = CARRY_BYTES / sizeof(float),
        .depth = CARRY_DEPTH,
        .thread = m->setup->thread,
        .pairs = m->setup->pairs,
        .messages = m->carried->messages,
        .slice_bytes = m->setup->slice_bytes,
        .algorithm = m->carried->algorithm,
    };
    struct group *g = group_open(m->carried->ops, &job);
    if (g && m->carried->memory != CARRY_OWN &&
        group_share(g, m->arena, CARRY_BYTES))
        group_close(&g);
    return g;
}

static int open_memory(struct member *m)
{
    bool shared = m->carried->memory == CARRY_SHARED;
    if (m->carried->device ? m->carried->device(&m->dev)
                           : device_open(&m->dev, "cpu"))
        return -1;
    m->arena = (shared ? device_alloc_shared
                       : device_alloc)(m->dev, CARRY_BYTES, sizeof *m->arena);
    m->host = mem_alloc(CARRY_BYTES, sizeof *m->host);
    m->want = mem_alloc(CARRY_BYTES, sizeof *m->want);
    return m->arena && m->host && m->want ? 0 : -1;
}

static void member_close(struct member *m)
{
    group_close(&m->group);
    mem_free(m->host);
    mem_free(m->want);
    if (m->dev) {
        device_free(m->dev, m->arena);
        device_close(&m->dev);
    }
}

// The body that the members of a world run, and its setup.
struct member_task {
    const struct carried *carried;
    const struct carry_setup *setup;
    int (*body)(struct member *m);
};

static int member_run(struct cluster *c, const void *arg, uint64_t *result)
{
    const struct member_task *r = arg;
    struct member m = {.carried = r->carried,
                       .setup = r->setup,
                       .cluster = c,
                       .rank = c->rank,
                       .world = c->world};
    int rc = open_memory(&m);
    if (!rc)
        rc = (m.group = member_open(&m, "dp")) ? 0 : -1;
    if (!rc)
        rc = r->body(&m);
    if (rc)
        log_line("rank %d of %d: %s", m.rank, m.world, fail_message());
    member_close(&m);
    *result = m.result;
    return rc;
}

int carry_run(const struct carried *c, const struct carry_setup *s,
              int (*body)(struct member *m), uint64_t *results)
{
    const struct member_task task = {.carried = c, .setup = s, .body = body};
    return (c->run ? c->run : forked_run)(c->cluster, s->world, s->timeout_s,
                                          member_run, &task, results);
}

bool carry_here(const struct carried *c, int world)
{
    return !c->cluster || c->cluster->world == world;
}

// ---- small integers

struct group_op trial_op(const struct member *m, enum group_verb verb, size_t n,
                         enum dtype type, enum dtype wire, int peer)
{
    float scale =
        group_is_sum(verb) && wire != type ? group_scale(wire, m->world) : 1;
    return (struct group_op){
        .verb = verb,
        .vector = {.n = n, .type = type, .wire = wire, .scale = scale},
        .peer = peer};
}

void trial_cut(const struct member *m, struct trial *t)
{
    size_t n = t->op.vector.n, from = 0, weight = 0, all = 0;
    for (int c = 0; c < m->world; c++)
        all += (size_t)(5 * c + t->salt) % 4;
    for (int c = 0; c < m->world; c++) {
        weight += (size_t)(5 * c + t->salt) % 4;
        size_t to = all ? n * weight / all : n;
        t->lengths[0][c] = to - from;
        from = to;
    }
    t->uneven = true;
}

// The number of elements that member `from` gives member `to`.
static size_t part(const struct trial *t, int from, int to)
{
    size_t quarters = (size_t)(7 * from + 3 * to + t->salt) % 4;
    return t->uneven ? t->each * quarters / 4 : t->each;
}

void trial_parts(const struct member *m, struct trial *t, size_t each,
                 bool uneven)
{
    size_t grain = m->group->job.grain;
    t->uneven = uneven;
    t->each = uneven ? each : (each + grain - 1) / grain * grain;
    t->op.given = t->op.vector;
    t->op.vector.n = t->op.given.n = 0;
    for (int r = 0; r < m->world; r++) {
        t->op.vector.n += t->lengths[0][r] = part(t, r, m->rank);
        t->op.given.n += t->lengths[1][r] = part(t, m->rank, r);
    }
}

static bool is_all_to_all(const struct trial *t)
{
    return t->op.verb == GROUP_ALL_TO_ALL;
}

// Bytes of a vector in the arena, guards included.
static size_t guarded(const struct group_vector *v)
{
    return 2 * GUARD + (v->n * dtype_bytes(v->type) + 7) / 8 * 8;
}

size_t trial_bytes(const struct trial *t)
{
    return guarded(&t->op.vector) +
           (is_all_to_all(t) ? guarded(&t->op.given) : 0);
}

// The largest value of one member. The wire can then hold the sum of all
// members exactly.
static int most_exact(const struct trial *t, int world)
{
    int sum = t->op.vector.wire == DTYPE_BF16 ? 240 : 2000;
    return sum / (world > 4 ? world : 4);
}

// Element i of a member's vector. The values repeat after 5 * (2 * most + 1)
// elements; repeat() uses this.
static double value(const struct trial *t, int world, int rank, size_t i)
{
    size_t most = (size_t)most_exact(t, world);
    size_t r = (size_t)rank, salt = (size_t)t->salt;
    size_t at = i * 7 + r * 31 + salt * 13 + i * r % 5;
    return (double)(at % (2 * most + 1)) - (double)most;
}

static void store(char *at, enum dtype type, size_t i, double x)
{
    float f = (float)x;
    uint16_t h = type == DTYPE_F16 ? f16_from_float(f) : bf16_from_float(f);
    unsigned char byte = (unsigned char)(int)x;
    const void *from = type == DTYPE_F64    ? (const void *)&x
                       : type == DTYPE_F32  ? (const void *)&f
                       : type == DTYPE_BYTE ? (const void *)&byte
                                            : (const void *)&h;
    memcpy(at + i * dtype_bytes(type), from, dtype_bytes(type));
}

// How many of the first n elements come before value() repeats itself.
static size_t distinct(const struct member *m, const struct trial *t, size_t n)
{
    size_t period = 5 * (2 * (size_t)most_exact(t, m->world) + 1);
    return n < period ? n : period;
}

// Fills the rest of the n elements at `at` with copies of the distinct ones.
static void repeat(const struct member *m, const struct trial *t, char *at,
                   size_t n)
{
    size_t size = dtype_bytes(t->op.vector.type), some;
    for (size_t done = distinct(m, t, n); done < n; done += some) {
        some = done < n - done ? done : n - done;
        memcpy(at + done * size, at, some * size);
    }
}

void trial_fill(struct member *m, const struct trial *t)
{
    const struct group_vector *v =
        is_all_to_all(t) ? &t->op.given : &t->op.vector;
    size_t bytes = trial_bytes(t), n = distinct(m, t, v->n);
    char *at = m->host + bytes - guarded(v) + GUARD;
    CHECK(t->off + bytes <= CARRY_BYTES);
    memset(m->host, PATTERN, bytes);
    for (size_t i = 0; i < n; i++)
        store(at, v->type, i, value(t, m->world, m->rank, i));
    repeat(m, t, at, v->n);
    device_copy(m->dev, m->arena + t->off, m->host, bytes);
}

// Every member's own part stays where it is.
static void law_of_parts(const struct member *m, const struct trial *t,
                         uint64_t *out, uint64_t *in)
{
    size_t size = dtype_bytes(t->op.vector.type);
    for (int r = 0; r < m->world; r++) {
        *out += r == m->rank ? 0 : size * part(t, m->rank, r);
        *in += r == m->rank ? 0 : size * part(t, r, m->rank);
    }
}

int trial_post(struct member *m, struct group *g, struct trial *t)
{
    struct group_vector *v = &t->op.vector, *given = &t->op.given;
    uint64_t out = 0, in = 0;
    v->data = m->arena + t->off + GUARD;
    given->data = (char *)v->data + guarded(v);
    v->lengths = t->uneven ? t->lengths[0] : NULL;
    given->lengths = t->uneven ? t->lengths[1] : NULL;
    if (t->op.verb == GROUP_SEND)
        out = v->n * dtype_bytes(v->wire);
    else if (t->op.verb == GROUP_RECV)
        in = v->n * dtype_bytes(v->wire);
    else if (is_all_to_all(t))
        law_of_parts(m, t, &out, &in);
    else if (m->carried->law && m->world > 1)
        m->carried->law(g, &t->op, &out, &in);
    m->out += out;
    m->in += in;
    return group_post(g, &t->op, &t->ticket);
}

// The elements that a verb promises this member.
static struct group_chunk promised(const struct member *m,
                                   const struct trial *t)
{
    const struct group_op *op = &t->op;
    struct group_chunk all = {0, op->vector.n};
    if (op->verb == GROUP_REDUCE_SCATTER)
        return group_chunk_of(&op->vector, m->group->job.grain, m->world,
                              m->rank);
    if (op->verb == GROUP_REDUCE && op->peer != m->rank)
        all.n = 0;
    return all;
}

// Writes the expected contents of n elements to m->want. A sum is that of all
// members' elements from number `first` on. A verb that only moves numbers
// moves those of member `from`.
static void expect(struct member *m, const struct trial *t, size_t n,
                   size_t first, int from)
{
    bool sums = group_is_sum(t->op.verb);
    double scale = m->world > 1 ? (double)t->op.vector.scale : 1;
    size_t some = distinct(m, t, n);
    for (size_t i = 0; i < some; i++) {
        double x = 0;
        for (int r = sums ? 0 : from; r <= (sums ? m->world - 1 : from); r++)
            x += value(t, m->world, r, first + i);
        store(m->want, t->op.vector.type, i, sums ? x * scale : x);
    }
    repeat(m, t, m->want, n);
}

static int wrong(const struct member *m, const struct trial *t,
                 const char *what, size_t i)
{
    const struct group_vector *v = &t->op.vector;
    return fail("%s of %zu %s in %s, root or peer %d, grain %zu, world %d: %s "
                "%zu is wrong",
                group_verb_name(t->op.verb), v->n, dtype_name(v->type),
                dtype_name(v->wire), t->op.peer, m->group->job.grain, m->world,
                what, i);
}

// Checks n elements at `at`, which are number `first` and so on of a vector.
static int check_elements(struct member *m, const struct trial *t,
                          const char *at, size_t n, size_t first, int from)
{
    size_t size = dtype_bytes(t->op.vector.type), i = 0;
    expect(m, t, n, first, from);
    if (!memcmp(m->want, at, n * size))
        return 0;
    while (!memcmp(m->want + i * size, at + i * size, size))
        i++;
    return wrong(m, t, "element", first + i);
}

static int check_chunk(struct member *m, const struct trial *t,
                       struct group_chunk c, int from)
{
    size_t size = dtype_bytes(t->op.vector.type);
    return check_elements(m, t, m->host + GUARD + c.off * size, c.n, c.off,
                          from);
}

// Each member's part has come, and what this member gave is unchanged.
static int check_parts(struct member *m, const struct trial *t)
{
    const struct group_vector *v = &t->op.vector, *given = &t->op.given;
    const char *at = m->host + GUARD;
    for (int r = 0; r < m->world; r++) {
        size_t n = part(t, r, m->rank), first = 0;
        for (int to = 0; to < m->rank; to++)
            first += part(t, r, to);
        if (check_elements(m, t, at, n, first, r))
            return -1;
        at += n * dtype_bytes(v->type);
    }
    return check_elements(m, t, m->host + guarded(v) + GUARD, given->n, 0,
                          m->rank);
}

static int check_guards(const struct member *m, const struct trial *t,
                        size_t off, const struct group_vector *v)
{
    size_t bytes = v->n * dtype_bytes(v->type);
    for (size_t i = 0; i < guarded(v) - bytes; i++) {
        size_t at = off + (i < GUARD ? i : i + bytes);
        if ((unsigned char)m->host[at] != PATTERN)
            return wrong(m, t, "guarding byte", at);
    }
    return 0;
}

int trial_check(struct member *m, const struct trial *t)
{
    const struct group_op *op = &t->op;
    const struct group_vector *v = &op->vector;
    bool moves = group_is_pair(op->verb);
    device_copy(m->dev, m->host, m->arena + t->off, trial_bytes(t));
    if (check_guards(m, t, 0, v))
        return -1;
    if (is_all_to_all(t))
        return check_guards(m, t, guarded(v), &op->given) || check_parts(m, t)
                   ? -1
                   : 0;
    if (op->verb != GROUP_ALL_GATHER)
        return check_chunk(m, t, promised(m, t), moves ? t->origin : op->peer);
    for (int c = 0; c < m->world; c++)
        if (check_chunk(m, t,
                        group_chunk_of(v, m->group->job.grain, m->world, c), c))
            return -1;
    return 0;
}

// ---- normal deviates

void member_normals(struct member *m, size_t off, size_t n)
{
    float *v = (float *)m->host;
    uint64_t key = rng_key(off, (uint64_t)m->rank);
    for (size_t i = 0; i < n; i++)
        v[i] = (float)rng_normal(key, i);
    device_copy(m->dev, m->arena + off, v, n * sizeof *v);
}

uint64_t member_hash(struct member *m, size_t off, size_t n)
{
    device_copy(m->dev, m->host, m->arena + off, n * sizeof(float));
    return hash_bytes(m->host, n * sizeof(float));
}
