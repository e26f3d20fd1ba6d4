// group_cases.c - the cases that every carrier of group.h must pass.

#include "tests/group_cases.h"

#include "base/base.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/test.h"

struct format {
    enum dtype type, wire;
};

static const struct format formats[] = {
    {DTYPE_F32, DTYPE_F32},  {DTYPE_F32, DTYPE_F16}, {DTYPE_F32, DTYPE_BF16},
    {DTYPE_F64, DTYPE_F64},  {DTYPE_F16, DTYPE_F16}, {DTYPE_BF16, DTYPE_BF16},
    {DTYPE_BYTE, DTYPE_BYTE}};

// The first FLOATS are formats of floats. The first SUMS can be summed.
enum { FORMATS = 7, FLOATS = 3, SUMS = 4 };

void skip_other_worlds(const struct carried *c, int first, int last)
{
    if (c->cluster && (c->cluster->world < first || c->cluster->world > last))
        skip();
}

void run_all(const struct carried *c, const struct carry_setup *s,
             int (*body)(struct member *m))
{
    if (carry_here(c, s->world))
        assert_int_equal(carry_run(c, s, body, NULL), 0);
}

// ---- integers, to the bit

// Verbs that are posted before the first of them is awaited.
struct batch {
    struct trial trials[CARRY_DEPTH];
    int n;
    size_t used; // bytes of the arena
    int salt;
};

// Waits for the verbs and checks them. With an odd salt the device waits
// (group_follow()), else the host.
static int batch_end(struct member *m, struct batch *b)
{
    int n = b->n;
    if (n == 0)
        return 0;
    uint64_t last = b->trials[n - 1].ticket;
    if ((b->salt % 2 ? group_follow : group_await)(m->group, last))
        return -1;
    for (int i = 0; i < n; i++)
        if (trial_check(m, &b->trials[i]))
            return -1;
    b->n = 0;
    b->used = 0;
    return group_await(m->group, last);
}

static int batch_add(struct member *m, struct batch *b, struct group_op op)
{
    struct trial t = {.op = op, .salt = b->salt++};
    bool full = b->n == CARRY_DEPTH || b->used + trial_bytes(&t) > CARRY_BYTES;
    if (full && batch_end(m, b))
        return -1;
    t.off = b->used;
    t.op.vector.awaited = b->n == CARRY_DEPTH - 1;
    trial_fill(m, &t);
    if (trial_post(m, m->group, &t))
        return -1;
    b->used += trial_bytes(&t);
    b->trials[b->n++] = t;
    return 0;
}

static bool is_allowed(enum group_verb verb, int format)
{
    return format < SUMS || verb == GROUP_ALL_GATHER || verb == GROUP_BROADCAST;
}

static bool has_root(enum group_verb verb)
{
    return verb == GROUP_BROADCAST || verb == GROUP_REDUCE;
}

// All verbs on vectors of n elements. If there are many possible roots, tries
// only some.
static int all_verbs(struct member *m, struct batch *b, size_t n, int format)
{
    const struct format f = formats[format];
    for (int verb = 0; verb < GROUP_SEND; verb++) {
        enum group_verb v = (enum group_verb)verb;
        int roots = has_root(v) ? m->world : 1;
        int step = roots > CARRY_WORLDS ? roots / 2 - 1 : 1;
        for (int root = 0; is_allowed(v, format) && root < roots; root += step)
            if (batch_add(m, b, trial_op(m, v, n, f.type, f.wire, root)))
                return -1;
    }
    return 0;
}

int member_bytes(const struct member *m)
{
    const struct group_stats *s = &m->group->stats;
    if (!m->carried->law || (s->bytes_out == m->out && s->bytes_in == m->in))
        return 0;
    return fail("%llu bytes out and %llu in; the law says %llu and %llu",
                (unsigned long long)s->bytes_out,
                (unsigned long long)s->bytes_in, (unsigned long long)m->out,
                (unsigned long long)m->in);
}

static int verbs_of(struct member *m, const size_t *sizes, int count)
{
    struct batch b = {0};
    for (int k = 0; k < count; k++)
        for (int format = 0; format < FORMATS; format++)
            if (all_verbs(m, &b, sizes[k], format))
                return -1;
    return batch_end(m, &b) || member_bytes(m) ? -1 : 0;
}

static int verbs_body(struct member *m)
{
    // A slice holds 256 numbers of 32 bits.
    static const size_t sizes[] = {1, 7, 257, 513, 1000, 20011};
    return verbs_of(m, sizes, 6);
}

static int many_body(struct member *m)
{
    static const size_t sizes[] = {1, 7, 20011};
    return verbs_of(m, sizes, 3);
}

// The first size is just over a default slice. The second is more than fits
// into one piece of memory.
static int large_body(struct member *m)
{
    static const size_t sizes[] = {65537, 270001};
    return verbs_of(m, sizes, 2);
}

void carry_verbs(const struct carried *c)
{
    skip_other_worlds(c, 1, CARRY_WORLDS);
    for (int world = 1; world <= CARRY_WORLDS; world++) {
        struct carry_setup s = {.world = world,
                                .grain = 1,
                                .thread = true,
                                .slice_bytes = CARRY_SLICE};
        run_all(c, &s, verbs_body);
        s.grain = 64;
        s.thread = false;
        run_all(c, &s, verbs_body);
    }
}

void carry_many(const struct carried *c)
{
    skip_other_worlds(c, CARRY_MANY, CARRY_MANY);
    struct carry_setup s = {.world = CARRY_MANY, .grain = 1, .thread = true};
    run_all(c, &s, many_body);
}

void carry_large(const struct carried *c)
{
    skip_other_worlds(c, 2, 3);
    for (int world = 2; world <= 3; world++) {
        struct carry_setup s = {.world = world, .grain = 1, .thread = true};
        run_all(c, &s, large_body);
    }
}

// ---- reduce_scatter and then all_gather equal an all_reduce

static struct group_vector vector_at(const struct member *m, size_t off,
                                     size_t n, enum dtype wire, bool scaled)
{
    struct group_vector v = group_floats((float *)(m->arena + off), n);
    v.wire = wire;
    v.scale = scaled ? group_scale(wire, m->world) : 1;
    return v;
}

static int halves_of(struct member *m, size_t n, enum dtype wire)
{
    struct group *g = m->group;
    struct group_vector sum = vector_at(m, 0, n, wire, true);
    struct group_vector move = vector_at(m, 0, n, wire, false);
    uint64_t ticket, start = g->stats.bytes_out;
    member_normals(m, 0, n);
    if (group_all_reduce(g, &sum, &ticket) || group_await(g, ticket))
        return -1;
    uint64_t whole = member_hash(m, 0, n);
    uint64_t first = g->stats.bytes_out - start;
    member_normals(m, 0, n);
    if (group_reduce_scatter(g, &sum, &ticket) || group_await(g, ticket) ||
        group_all_gather(g, &move, &ticket) || group_await(g, ticket))
        return -1;
    uint64_t halves = member_hash(m, 0, n);
    uint64_t second = g->stats.bytes_out - start - first;
    if (m->carried->halves_bytes && first != second)
        return fail("the two halves move %llu bytes, all_reduce %llu",
                    (unsigned long long)second, (unsigned long long)first);
    m->result = hash_more(m->result, &whole, sizeof whole);
    return whole == halves ? 0
                           : fail("halves of %zu in %s differ from all_reduce",
                                  n, dtype_name(wire));
}

static int halves_body(struct member *m)
{
    static const size_t sizes[] = {7, 1000, 3001, 20011};
    for (int i = 0; i < 4 * FLOATS; i++)
        if (halves_of(m, sizes[i / FLOATS], formats[i % FLOATS].wire))
            return -1;
    return 0;
}

void carry_halves(const struct carried *c)
{
    skip_other_worlds(c, 2, CARRY_WORLDS);
    for (int world = 2; world <= CARRY_WORLDS; world++) {
        struct carry_setup s = {.world = world,
                                .grain = 16,
                                .thread = true,
                                .slice_bytes = CARRY_SLICE};
        uint64_t results[CARRY_WORLDS];
        if (!carry_here(c, world))
            continue;
        assert_int_equal(carry_run(c, &s, halves_body, results), 0);
        for (int r = 1; r < world; r++)
            assert_true(results[r] == results[0]);
    }
}

// ---- the same bits with and without a thread, and over two carriers

static int sums_of(struct member *m, size_t n, enum dtype wire)
{
    enum { AT = CARRY_BYTES / 2 };
    struct group *g = m->group;
    struct group_vector sum = vector_at(m, 0, n, wire, true);
    struct group_vector one = vector_at(m, AT, n, wire, true);
    struct group_vector back = vector_at(m, AT, n, wire, false);
    uint64_t ticket;
    member_normals(m, 0, n);
    member_normals(m, AT, n);
    if (group_all_reduce(g, &sum, NULL) ||
        group_reduce(g, &one, m->world - 1, &ticket) ||
        group_await(g, ticket) ||
        group_broadcast(g, &back, m->world - 1, &ticket) ||
        group_await(g, ticket))
        return -1;
    const uint64_t hash[2] = {member_hash(m, 0, n), member_hash(m, AT, n)};
    m->result = hash_more(m->result, hash, sizeof hash);
    return 0;
}

static int normals_body(struct member *m)
{
    static const size_t sizes[] = {300, 5003, 70001};
    for (int i = 0; i < 3 * FLOATS; i++)
        if (sums_of(m, sizes[i / FLOATS], formats[i % FLOATS].wire))
            return -1;
    return 0;
}

void carry_threads(const struct carried *c)
{
    skip_other_worlds(c, 2, CARRY_WORLDS);
    for (int world = 2; world <= CARRY_WORLDS; world++) {
        struct carry_setup s = {.world = world, .slice_bytes = CARRY_SLICE};
        uint64_t alone[CARRY_WORLDS], threaded[CARRY_WORLDS];
        if (!carry_here(c, world))
            continue;
        assert_int_equal(carry_run(c, &s, normals_body, alone), 0);
        s.thread = true;
        assert_int_equal(carry_run(c, &s, normals_body, threaded), 0);
        for (int r = 0; r < world; r++)
            assert_true(threaded[r] == alone[0] && alone[r] == alone[0]);
    }
}

void carry_same_bits(const struct carried *a, const struct carried *b)
{
    skip_other_worlds(a, 2, CARRY_WORLDS);
    for (int world = 2; world <= CARRY_WORLDS; world++) {
        struct carry_setup s = {.world = world, .grain = 1, .thread = true};
        uint64_t bits[2][CARRY_WORLDS];
        if (!carry_here(a, world))
            continue;
        assert_int_equal(carry_run(a, &s, normals_body, bits[0]), 0);
        assert_int_equal(carry_run(b, &s, normals_body, bits[1]), 0);
        for (int r = 0; r < world; r++)
            assert_true(bits[0][r] == bits[1][r]);
    }
}

// ---- two groups of one process

// Verb number k of a group, in the group's half of the arena.
static struct trial interleaved(const struct member *m, int group, int k)
{
    enum group_verb verb = (enum group_verb)((k + group) % GROUP_SEND);
    size_t n = 3000 + (size_t)(100 * k + group);
    struct format f = formats[k % SUMS];
    struct trial t = {.op = trial_op(m, verb, n, f.type, f.wire, k % m->world),
                      .salt = 17 * k + group,
                      .off =
                          (size_t)group * CARRY_BYTES / 2 + (size_t)k * 65536};
    return t;
}

static int post_both(struct member *m, struct group *const *groups,
                     struct trial trials[2][CARRY_DEPTH])
{
    for (int k = 0; k < CARRY_DEPTH; k++) {
        for (int i = 0; i < 2; i++) {
            struct trial *t = &trials[i][k];
            *t = interleaved(m, i, k);
            trial_fill(m, t);
            if (trial_post(m, groups[i], t))
                return -1;
        }
    }
    return 0;
}

// Posts to both groups. The group that is posted to first is awaited last.
static int groups_of(struct member *m, struct group *const *groups)
{
    struct trial trials[2][CARRY_DEPTH];
    for (int round = 0; round < 3; round++) {
        if (post_both(m, groups, trials))
            return -1;
        for (int i = 1; i >= 0; i--) {
            for (int k = 0; k < CARRY_DEPTH; k++)
                if (group_await(groups[i], trials[i][k].ticket) ||
                    trial_check(m, &trials[i][k]))
                    return -1;
        }
    }
    return 0;
}

static int groups_body(struct member *m)
{
    struct group *groups[2] = {m->group, member_open(m, "tp")};
    int rc = groups[1] ? groups_of(m, groups) : -1;
    group_close(&groups[1]);
    return rc;
}

void carry_groups(const struct carried *c)
{
    skip_other_worlds(c, 2, CARRY_WORLDS);
    for (int world = 2; world <= CARRY_WORLDS; world++) {
        for (int thread = 0; thread <= 1; thread++) {
            struct carry_setup s = {.world = world,
                                    .grain = 1,
                                    .thread = thread,
                                    .slice_bytes = CARRY_SLICE};
            run_all(c, &s, groups_body);
        }
    }
}

// ---- faults: nobody hangs, and the right member is named

int member_names_last(const struct member *m)
{
    char rank[32];
    snprintf(rank, sizeof rank, "rank %d", m->world - 1);
    if (strncmp(fail_message(), "dp: ", 4) || !strstr(fail_message(), rank))
        return fail("does not name dp and %s: %.200s", rank, fail_message());
    return 0;
}

// The verb of a case of faults, on n elements; a part of an all_to_all has that
// many.
static void set_fault_trial(const struct member *m, struct trial *t, size_t n)
{
    *t = (struct trial){
        .op = trial_op(m, m->setup->verb, n, DTYPE_F32, DTYPE_F32, 0)};
    if (t->op.verb == GROUP_ALL_TO_ALL)
        trial_parts(m, t, n, false);
}

// The last member posts `own` verbs and then calls victim(). The others post
// the same verb and an all_reduce: after some verbs only an all_reduce can
// notice that a member is missing.
static int blame_body(struct member *m, int own,
                      int (*victim)(struct member *m))
{
    struct trial t;
    set_fault_trial(m, &t, 50000);
    struct trial all = {.op = trial_op(m, GROUP_ALL_REDUCE, 500000, DTYPE_F32,
                                       DTYPE_F32, 0),
                        .off = trial_bytes(&t)};
    bool last = m->rank == m->world - 1;
    trial_fill(m, &t);
    trial_fill(m, &all);
    if (trial_post(m, m->group, &t) || group_await(m->group, t.ticket))
        return -1;
    trial_fill(m, &t);
    if (last && own > 0 && trial_post(m, m->group, &t))
        return -1;
    if (last)
        return victim(m);
    if (!trial_post(m, m->group, &t) && !trial_post(m, m->group, &all) &&
        !group_await(m->group, all.ticket))
        return fail("the verbs succeed without rank %d", m->world - 1);
    if (member_names_last(m))
        return -1;
    if (!trial_post(m, m->group, &t))
        return fail("a verb succeeds after a failure");
    return member_names_last(m);
}

// How many members have given up on the last one; shared by all of a world.
static atomic_int *gave_up;

static int stays_away(struct member *m)
{
    while (atomic_load(gave_up) < m->world - 1)
        usleep(1000);
    return 0;
}

static int dies(struct member *m)
{
    (void)m;
    raise(SIGKILL);
    return -1;
}

static int missing_body(struct member *m)
{
    int rc = blame_body(m, 0, stays_away);
    atomic_fetch_add(gave_up, 1);
    return rc;
}

static int killed_body(struct member *m)
{
    return blame_body(m, 1, dies);
}

// Verb number i of the cases of faults: a collective, or all_to_all.
static enum group_verb fault_verb(int i)
{
    return i < GROUP_SEND ? (enum group_verb)i : GROUP_ALL_TO_ALL;
}

void carry_missing(const struct carried *c)
{
    assert_null(c->cluster); // the members are forked here
    gave_up = mmap(NULL, sizeof *gave_up, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(gave_up != MAP_FAILED);
    for (int i = 0; i <= GROUP_SEND; i++) {
        struct carry_setup s = {.world = 2 + i % 3,
                                .verb = fault_verb(i),
                                .thread = i % 2,
                                .pairs = i == GROUP_SEND,
                                .timeout_s = 1.5};
        atomic_store(gave_up, 0);
        run_all(c, &s, missing_body);
    }
    munmap(gave_up, sizeof *gave_up);
}

void carry_killed(const struct carried *c)
{
    assert_null(c->cluster); // the members are forked here
    for (int i = 0; i < 3 * (GROUP_SEND + 1); i++) {
        struct carry_setup s = {.world = 2 + i % 3,
                                .verb = fault_verb(i / 3),
                                .thread = i % 2,
                                .pairs = i / 3 == GROUP_SEND,
                                .timeout_s = 10};
        // Only the victim fails.
        assert_int_equal(carry_run(c, &s, killed_body, NULL), 1);
    }
}
