// group_parts.c - the cases of all_to_all, and of vectors whose chunks have
// lengths of their own, for every carrier.

#include "tests/group_cases.h"

#include "base/base.h"

#include "tests/test.h"

static const enum dtype types[] = {DTYPE_F32, DTYPE_F64, DTYPE_F16, DTYPE_BF16,
                                   DTYPE_BYTE};

enum { TYPES = 5, SUMS = 2 }; // the first SUMS can be summed

// Verbs that are posted before the first of them is awaited.
struct batch {
    struct trial trials[CARRY_DEPTH];
    int n;
    size_t used; // bytes of the arena
    int salt;
};

static int end_batch(struct member *m, struct batch *b)
{
    for (int i = 0; i < b->n; i++)
        if (group_await(m->group, b->trials[i].ticket) ||
            trial_check(m, &b->trials[i]))
            return -1;
    b->n = 0;
    b->used = 0;
    return 0;
}

// Bytes of the arena for a trial. Members give and take different numbers of
// elements, but a vector must begin at the same offset on all (group_share()).
static size_t room(const struct member *m, const struct trial *t, size_t n)
{
    size_t most = (n + m->group->job.grain) * (size_t)m->world;
    size_t bytes = 512 + 2 * most * dtype_bytes(t->op.vector.type);
    CHECK(bytes >= trial_bytes(t));
    return (bytes + 63) / 64 * 64;
}

// Adds a verb on n elements in uneven chunks; or an all_to_all, whose parts
// have at most n elements if they are uneven.
static int add(struct member *m, struct batch *b, enum group_verb verb,
               size_t n, enum dtype type, bool uneven)
{
    struct trial t = {.op = trial_op(m, verb, n, type, type, 0),
                      .salt = b->salt++};
    if (verb == GROUP_ALL_TO_ALL)
        trial_parts(m, &t, n, uneven);
    else
        trial_cut(m, &t);
    size_t bytes = room(m, &t, n);
    bool full = b->n == CARRY_DEPTH || b->used + bytes > CARRY_BYTES;
    if (full && end_batch(m, b))
        return -1;
    struct trial *at = &b->trials[b->n++];
    *at = t;
    at->off = b->used;
    b->used += bytes;
    trial_fill(m, at);
    return trial_post(m, m->group, at);
}

// ---- chunks of any length

static int uneven_body(struct member *m)
{
    static const size_t sizes[] = {1, 5, 1000, 3001, 20011};
    struct batch b = {0};
    for (int i = 0; i < 5 * TYPES; i++) {
        size_t n = sizes[i / TYPES];
        enum dtype type = types[i % TYPES];
        bool sums = i % TYPES < SUMS;
        for (int k = 0; k < 3; k++)
            if (add(m, &b, GROUP_ALL_GATHER, n, type, true) ||
                (sums && (add(m, &b, GROUP_REDUCE_SCATTER, n, type, true) ||
                          add(m, &b, GROUP_ALL_REDUCE, n, type, true))))
                return -1;
    }
    return end_batch(m, &b) || member_bytes(m) ? -1 : 0;
}

void carry_uneven(const struct carried *c)
{
    skip_other_worlds(c, 1, CARRY_WORLDS);
    for (int world = 1; world <= CARRY_WORLDS; world++) {
        struct carry_setup s = {.world = world,
                                .thread = world % 2,
                                .slice_bytes = CARRY_SLICE};
        run_all(c, &s, uneven_body);
    }
}

// ---- all_to_all

// Exchanges of parts, with another verb between them.
static int exchanges(struct member *m, const size_t *sizes, int count)
{
    struct batch b = {0};
    for (int i = 0; i < count * TYPES; i++) {
        size_t n = sizes[i / TYPES];
        enum dtype type = types[i % TYPES];
        if (add(m, &b, GROUP_ALL_TO_ALL, n, type, true) ||
            add(m, &b, GROUP_ALL_GATHER, n, type, true) ||
            add(m, &b, GROUP_ALL_TO_ALL, n, type, false) ||
            add(m, &b, GROUP_ALL_TO_ALL, n, type, true))
            return -1;
    }
    return end_batch(m, &b) || member_bytes(m) ? -1 : 0;
}

static int parts_body(struct member *m)
{
    // Uneven parts of one element are all empty.
    static const size_t sizes[] = {0, 1, 7, 257, 1000, 20011};
    return exchanges(m, sizes, 6);
}

static int many_body(struct member *m)
{
    static const size_t sizes[] = {1, 7, 5003};
    return exchanges(m, sizes, 3);
}

void carry_all_to_all(const struct carried *c)
{
    skip_other_worlds(c, 1, CARRY_WORLDS);
    for (int world = 1; world <= CARRY_WORLDS; world++) {
        struct carry_setup s = {.world = world,
                                .grain = world % 2 ? 1 : 64,
                                .thread = world % 2,
                                .pairs = true,
                                .slice_bytes = CARRY_SLICE};
        run_all(c, &s, parts_body);
        s.thread = !s.thread;
        run_all(c, &s, parts_body);
    }
}

void carry_all_to_all_many(const struct carried *c)
{
    skip_other_worlds(c, CARRY_MANY, CARRY_MANY);
    struct carry_setup s = {.world = CARRY_MANY,
                            .grain = 1,
                            .thread = true,
                            .pairs = true};
    run_all(c, &s, many_body);
}
