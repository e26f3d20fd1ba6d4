// group_pairs.c - the cases of send and recv, for every carrier that has them.

#include "tests/group_cases.h"

#include "base/base.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tests/test.h"

static const struct {
    enum dtype type, wire;
} formats[] = {{DTYPE_F32, DTYPE_F32},   {DTYPE_F32, DTYPE_F16},
               {DTYPE_F32, DTYPE_BF16},  {DTYPE_F64, DTYPE_F64},
               {DTYPE_BF16, DTYPE_BF16}, {DTYPE_F16, DTYPE_F16},
               {DTYPE_BYTE, DTYPE_BYTE}};

enum { FORMATS = 7 };

// The messages of a member, one after the other in the arena.
struct exchange {
    struct trial trials[CARRY_DEPTH];
    int n;
    size_t used, size; // bytes used; elements of a vector
    int format, salt;
};

// Adds a message. Its numbers are those of member `origin`.
static struct trial *add(struct member *m, struct exchange *e,
                         enum group_verb verb, int peer, int origin)
{
    struct trial *t = &e->trials[e->n++];
    CHECK(e->n <= CARRY_DEPTH);
    *t =
        (struct trial){.op = trial_op(m, verb, e->size, formats[e->format].type,
                                      formats[e->format].wire, peer),
                       .salt = e->salt,
                       .origin = origin,
                       .off = e->used};
    e->used += trial_bytes(t);
    return t;
}

static int post_all(struct member *m, struct exchange *e)
{
    for (int i = 0; i < e->n; i++)
        trial_fill(m, &e->trials[i]);
    for (int i = 0; i < e->n; i++)
        if (trial_post(m, m->group, &e->trials[i]))
            return -1;
    return 0;
}

static int end_all(struct member *m, struct exchange *e)
{
    for (int i = 0; i < e->n; i++)
        if (group_await(m->group, e->trials[i].ticket) ||
            trial_check(m, &e->trials[i]))
            return -1;
    e->n = 0;
    e->used = 0;
    e->salt += 7;
    return 0;
}

// Sends to both neighbours and receives from both, with an all_reduce between.
static int neighbours(struct member *m, struct exchange *e)
{
    int left = (m->rank + m->world - 1) % m->world;
    int right = (m->rank + 1) % m->world;
    bool waits = m->carried->in_order && m->rank % 2;
    if (waits)
        add(m, e, GROUP_RECV, left, left);
    add(m, e, GROUP_SEND, right, m->rank);
    if (!waits)
        add(m, e, GROUP_RECV, left, left);
    if (e->format < 4)
        add(m, e, GROUP_ALL_REDUCE, 0, 0);
    if (waits)
        add(m, e, GROUP_RECV, right, right);
    add(m, e, GROUP_SEND, left, m->rank);
    if (!waits)
        add(m, e, GROUP_RECV, right, right);
    return post_all(m, e) || end_all(m, e) ? -1 : 0;
}

// Passes member 0's numbers from each member to the next.
static int chain(struct member *m, struct exchange *e)
{
    struct trial *t = NULL;
    if (m->rank > 0) {
        t = add(m, e, GROUP_RECV, m->rank - 1, 0);
        trial_fill(m, t);
        if (trial_post(m, m->group, t) || group_await(m->group, t->ticket))
            return -1;
    }
    if (m->rank < m->world - 1) {
        bool first = !t;
        struct trial *from = first ? add(m, e, GROUP_SEND, 1, 0) : t;
        if (first)
            trial_fill(m, from);
        from->op.verb = GROUP_SEND;
        from->op.peer = m->rank + 1;
        if (trial_post(m, m->group, from))
            return -1;
    }
    return end_all(m, e);
}

// The last member receives from all others, or sends to all, in falling order
// of ranks.
static int star(struct member *m, struct exchange *e, bool gathers)
{
    int last = m->world - 1;
    if (m->rank != last)
        add(m, e, gathers ? GROUP_SEND : GROUP_RECV, last,
            gathers ? m->rank : last);
    for (int r = last - 1; m->rank == last && r >= 0; r--)
        if (last - r < CARRY_DEPTH)
            add(m, e, gathers ? GROUP_RECV : GROUP_SEND, r, gathers ? r : last);
    return post_all(m, e) || end_all(m, e) ? -1 : 0;
}

static int pairs_body(struct member *m)
{
    static const size_t sizes[] = {1, 7, 257, 513, 1000, 20011};
    struct exchange e = {0};
    for (int i = 0; i < 6 * FORMATS; i++) {
        e.size = sizes[i / FORMATS];
        e.format = i % FORMATS;
        if (neighbours(m, &e) || chain(m, &e) || star(m, &e, true) ||
            star(m, &e, false))
            return -1;
    }
    return member_bytes(m);
}

// Messages larger than the buffers of sockets and shared memory, and than a
// slice.
static int large_body(struct member *m)
{
    struct exchange e = {.size = 65537};
    for (e.format = 0; e.format < FORMATS; e.format++)
        if (neighbours(m, &e) || chain(m, &e))
            return -1;
    return member_bytes(m);
}

void carry_pairs(const struct carried *c)
{
    skip_other_worlds(c, 2, CARRY_WORLDS);
    for (int world = 2; world <= CARRY_WORLDS; world++) {
        struct carry_setup s = {.world = world,
                                .thread = world % 2,
                                .pairs = true,
                                .slice_bytes = CARRY_SLICE};
        run_all(c, &s, pairs_body);
        s.thread = !s.thread;
        run_all(c, &s, large_body);
    }
}

// ---- a message leaves while its sender computes

// Member 0 sends a message longer than any buffer, and does not await it before
// member 1 has received it.
static int leaves_body(struct member *m)
{
    struct exchange e = {.size = 500000};
    bool sends = m->rank == 0;
    add(m, &e, sends ? GROUP_SEND : GROUP_RECV, 1 - m->rank, 0);
    if (post_all(m, &e) || (sends && cluster_barrier(m->cluster)) ||
        end_all(m, &e))
        return -1;
    return sends ? 0 : cluster_barrier(m->cluster);
}

void carry_leaves(const struct carried *c)
{
    struct carry_setup s = {.world = 2,
                            .thread = true,
                            .pairs = true,
                            .timeout_s = 5};
    run_all(c, &s, leaves_body);
}

// ---- faults

// The last member dies. The others wait for it; with `next`, each waits for the
// next member.
static int orphan(struct member *m, bool next)
{
    struct exchange e = {.size = 3000};
    int last = m->world - 1;
    if (neighbours(m, &e))
        return -1;
    if (m->rank == last)
        raise(SIGKILL);
    struct trial *t = add(m, &e, GROUP_RECV, next ? m->rank + 1 : last, last);
    trial_fill(m, t);
    if (!trial_post(m, m->group, t) && !group_await(m->group, t->ticket))
        return fail("receives from rank %d, which is dead", last);
    return member_names_last(m);
}

static int orphans_of_one(struct member *m)
{
    return orphan(m, false);
}

static int orphans_in_a_row(struct member *m)
{
    return orphan(m, true);
}

void carry_orphans(const struct carried *c)
{
    assert_null(c->cluster); // the members are forked here
    for (int world = 2; world <= CARRY_WORLDS; world++) {
        struct carry_setup s = {.world = world,
                                .thread = world % 2,
                                .pairs = true,
                                .timeout_s = 10};
        // Only the victim fails.
        assert_int_equal(carry_run(c, &s, orphans_of_one, NULL), 1);
        s.thread = !s.thread;
        assert_int_equal(carry_run(c, &s, orphans_in_a_row, NULL), 1);
    }
}
