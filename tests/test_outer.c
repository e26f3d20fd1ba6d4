// test_outer.c - compares local SGD and DiLoCo with the ring, with workers that
// train alone and are averaged by hand, and with the law of bytes.

#include "group/group.h"
#include "horovod_ring/plan.h"
#include "sync/replicas.h"
#include "tests/outer_world.h"

#include "base/base.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/test.h"

static const struct fixture ring = {
    .sync = "ring",
    .ops = &sync_replicas,
    .carriers = tcp,
    .opts = "slice_kb=1",
};

enum { STEPS = 7 };

// ---- every=1 with averaging and SGD: the ring's bits on integers

// The numbers have so few bits that every sum, product and mean is exact, also
// in 16 bits. Three workers have gradients that are multiples of 3.
static int exact_body(struct worker *w)
{
    const struct how how = {.lr = 0.25f};
    for (int step = 1; step <= 3; step++) {
        struct sync_out out;
        worker_integers(w, step, 4);
        for (size_t i = 0; i < w->job.n; i++)
            w->job.grads[i] *= w->world == 3 ? 12 : 4;
        if (take_step(w, step, &how, &out))
            return -1;
        if (out.lag || out.skipped)
            return fail("step %d: lag %d, skipped %d", step, out.lag,
                        out.skipped);
    }
    w->result = hash_bytes(w->job.params, w->job.n * sizeof(float));
    return 0;
}

static int exact_sgd(struct worker *w)
{
    w->optim.momentum = 0.5f;
    w->optim.weight_decay = w->settings.wire == DTYPE_F32 ? 0.5f : 0;
    return worker_begin(w) || sync_bcast(w->sync) || exact_body(w) ? -1 : 0;
}

static void every_step_equals_the_ring(void **state)
{
    (void)state;
    static const char *const wires[] = {"fp32", "fp16", "bf16"};
    static const size_t sizes[][3] = {{1, 1, 1}, {7, 1, 2}, {5003, 300, 700}};
    for (int world = 1; world <= CASE_WORLDS; world++)
        for (int i = 0; i < 9; i++) {
            uint64_t want[CASE_WORLDS], have[CASE_WORLDS];
            const size_t *size = sizes[i % 3];
            struct setup s = {.world = world,
                              .n = size[0],
                              .first = size[1],
                              .bucket = size[2],
                              .sgd = true,
                              .closed = true};
            const char *wire = wires[(i + i / 3) % 3];
            snprintf(s.opts, sizeof s.opts, "wire=%s", wire);
            assert_int_equal(world_run(&ring, &s, exact_sgd, want), 0);
            snprintf(s.opts, sizeof s.opts, "every=1,wire=%s", wire);
            assert_int_equal(world_run(carried[i / 3], &s, exact_sgd, have), 0);
            for (int r = 0; r < world; r++) {
                if (have[r] != want[0])
                    print_message("world %d, n=%zu, %s: rank %d\n", world, s.n,
                                  s.opts, r);
                assert_true(have[r] == want[0]);
            }
        }
}

// ---- every=3: an oracle trains each worker alone and averages by hand

// The oracle's copies of all ranks, in this process.
struct peers {
    struct worker rank[CASE_WORLDS];
    float *start, *velocity;
};

static void peers_close(struct peers *c, int world)
{
    for (int r = 0; r < world; r++)
        oracle_close(&c->rank[r]);
    mem_free(c->start);
    mem_free(c->velocity);
}

static int peers_open(struct peers *c, const struct worker *w)
{
    *c = (struct peers){.start = mem_alloc(w->job.n, sizeof(float)),
                        .velocity = mem_alloc(w->job.n, sizeof(float))};
    for (int r = 0; r < w->world; r++)
        if (oracle_open(&c->rank[r], w))
            return -1;
    memcpy(c->start, w->job.params, w->job.n * sizeof(float));
    return c->start && c->velocity ? 0 : -1;
}

// The outer step of the papers. With lr 0 it is the mean.
static void peers_average(struct peers *c, int world, size_t n, float lr,
                          float momentum)
{
    for (size_t i = 0; i < n; i++) {
        float p = 0, d = 0;
        for (int r = 0; r < world; r++) {
            p += c->rank[r].job.params[i];
            d += c->start[i] - c->rank[r].job.params[i];
        }
        p /= (float)world;
        d /= (float)world;
        if (lr > 0) {
            c->velocity[i] = momentum * c->velocity[i] + d;
            p = c->start[i] - lr * (d + momentum * c->velocity[i]);
        }
        c->start[i] = p;
        for (int r = 0; r < world; r++)
            c->rank[r].job.params[i] = p;
    }
}

// Every rank takes its own step, as if it were alone.
static int peers_step(struct peers *c, int world, int step,
                      const struct how *how)
{
    struct sync_out out;
    for (int r = 0; r < world; r++) {
        struct worker *one = &c->rank[r];
        struct worker as = *one;
        as.rank = r;
        as.world = 1;
        worker_normals(&as, step);
        if (take_step(&as, step, how, &out))
            return -1;
    }
    return 0;
}

static int rounds_body(struct worker *w)
{
    const struct sync_settings *set = &w->settings;
    float lr = outer_averages(set) ? 0 : (float)set->outer_lr;
    struct peers c;
    int rc = peers_open(&c, w);
    for (int step = 1; !rc && step <= STEPS; step++) {
        struct how how = {0.01f, 1, step == STEPS};
        bool is_outer = step % EVERY == 0 || how.last;
        int lag = is_outer ? 0 : (w->world - 1) * (step % EVERY);
        struct sync_out out;
        worker_normals(w, step);
        rc = take_step(w, step, &how, &out) ||
             peers_step(&c, w->world, step, &how);
        if (!rc && is_outer)
            peers_average(&c, w->world, w->job.n, lr,
                          (float)set->outer_momentum);
        rc = rc || worker_equals(w, &c.rank[w->rank]);
        if (!rc && (out.lag != lag || !(out.grad_norm > 1)))
            rc = fail("step %d: lag %d, not %d; norm %g", step, out.lag, lag,
                      (double)out.grad_norm);
    }
    w->result = hash_bytes(w->job.params, w->job.n * sizeof(float));
    peers_close(&c, w->world);
    return rc ? -1 : 0;
}

// The sum of two numbers does not depend on their order. So all bits must
// agree, even with real numbers, AdamW and an active clip. The last step is not
// a multiple of every=.
static void every_third_step_equals_the_oracle(void **state)
{
    (void)state;
    static const char *const rules[] = {"", ",outer_lr=0.7,outer_momentum=0.9",
                                        ",outer_lr=0.5"};
    for (int world = 1; world <= 2; world++)
        for (int i = 0; i < 9; i++) {
            uint64_t hash[CASE_WORLDS];
            struct setup s = {.world = world,
                              .n = 4099,
                              .first = 300,
                              .bucket = 1500,
                              .sgd = i == 4};
            snprintf(s.opts, sizeof s.opts, "every=%d%s", EVERY, rules[i % 3]);
            assert_int_equal(world_run(carried[i / 3], &s, rounds_body, hash),
                             0);
            assert_true(hash[0] == hash[world - 1]);
        }
}

// ---- parameters are equal after an outer step, and only then

static int replicas_body(struct worker *w)
{
    uint64_t mine, all[CASE_WORLDS];
    for (int step = 1; step <= 2 * EVERY; step++) {
        const struct how how = {.lr = 0.01f};
        struct sync_out out;
        worker_normals(w, step);
        if (take_step(w, step, &how, &out))
            return -1;
        mine = hash_bytes(w->job.params, w->job.n * sizeof(float));
        if (cluster_allgather(w->cluster, &mine, all, sizeof mine))
            return -1;
        for (int r = 1; r < w->world; r++)
            if ((all[r] == all[0]) != (out.lag == 0))
                return fail("step %d: lag %d, and rank %d's parameters are%s "
                            "those of rank 0",
                            step, out.lag, r, all[r] == all[0] ? "" : " not");
    }
    return 0;
}

static void parameters_are_equal_where_lag_is_0(void **state)
{
    (void)state;
    static const char *const wires[] = {"fp32", "fp16", "bf16"};
    for (int world = 2; world <= CASE_WORLDS; world++)
        for (int i = 0; i < 6; i++) {
            struct setup s = {.world = world, .n = 5003, .bucket = 1500};
            snprintf(s.opts, sizeof s.opts, "every=%d,wire=%s%s", EVERY,
                     wires[i % 3],
                     i < 3 ? "" : ",outer_lr=0.7,outer_momentum=0.9");
            assert_int_equal(world_run(&outer_tcp, &s, replicas_body, NULL), 0);
        }
}

// ---- bytes: an outer step moves those of the ring for one vector, other steps
// none

static int bytes_body(struct worker *w)
{
    const struct plan p = {.rank = w->rank, .world = w->world, .grain = 1};
    const struct group_op sum = {.vector.n = w->job.n};
    size_t width = dtype_bytes(w->settings.wire);
    for (int step = 1; step <= STEPS; step++) {
        const struct how how = {0.01f, 1, step == STEPS};
        bool is_outer = step % EVERY == 0 || how.last;
        struct group_stats was = w->sync->stats;
        struct sync_out out;
        worker_normals(w, step);
        if (take_step(w, step, &how, &out))
            return -1;
        uint64_t sent = w->sync->stats.bytes_out - was.bytes_out;
        uint64_t received = w->sync->stats.bytes_in - was.bytes_in;
        uint64_t to = is_outer ? plan_elements(&p, &sum, OUT) * width : 0;
        uint64_t from = is_outer ? plan_elements(&p, &sum, IN) * width : 0;
        if (sent != to || received != from)
            return fail("step %d: %llu out, %llu in; the law: %llu, %llu", step,
                        (unsigned long long)sent, (unsigned long long)received,
                        (unsigned long long)to, (unsigned long long)from);
        w->result += sent;
    }
    return 0;
}

// Counts the bytes of one step of the ring.
static int ring_bytes_body(struct worker *w)
{
    uint64_t before = w->sync->stats.bytes_out;
    const struct how how = {0.01f, 1, false};
    struct sync_out out;
    worker_normals(w, 1);
    if (take_step(w, 1, &how, &out))
        return -1;
    w->result = w->sync->stats.bytes_out - before;
    return 0;
}

static void bytes_are_the_rings_divided_by_every(void **state)
{
    (void)state;
    static const char *const wires[] = {"fp32", "fp16", "bf16"};
    const int outer_steps = (STEPS + EVERY - 1) / EVERY;
    for (int world = 1; world <= CASE_WORLDS; world++)
        for (int i = 0; i < 3; i++) {
            uint64_t a[CASE_WORLDS], b[CASE_WORLDS], ours = 0, rings = 0;
            struct setup s = {.world = world,
                              .n = 7001,
                              .first = 301,
                              .bucket = 1501};
            snprintf(s.opts, sizeof s.opts, "wire=%s", wires[i]);
            assert_int_equal(world_run(&ring, &s, ring_bytes_body, b), 0);
            snprintf(s.opts, sizeof s.opts, "wire=%s,every=%d", wires[i],
                     EVERY);
            assert_int_equal(world_run(&outer_tcp, &s, bytes_body, a), 0);
            for (int r = 0; r < world; r++) {
                ours += a[r];
                rings += b[r];
            }
            assert_int_equal(ours, (uint64_t)outer_steps * rings);
        }
}

// ---- a gradient that is not finite concerns only its worker

static int nan_body(struct worker *w)
{
    const struct how how = {.lr = 0.01f};
    struct sync_out out;
    worker_normals(w, 1);
    if (w->rank == 1)
        w->job.grads[5] = NAN;
    if (take_step(w, 1, &how, &out))
        return -1;
    return out.skipped == (w->rank == 1) ? 0 : fail("skipped %d", out.skipped);
}

static void a_nan_skips_the_step_of_its_worker(void **state)
{
    (void)state;
    struct setup s = {.world = 3, .n = 100};
    assert_int_equal(world_run(&outer_tcp, &s, nan_body, NULL), 0);
    assert_int_equal(world_run(&staged, &s, nan_body, NULL), 0);
}

// Step 2 of the cases in sync_cases.h must exchange, so every= is 1.
static const struct fixture each_step = {
    .sync = "outer",
    .ops = &sync_outer,
    .carriers = tcp,
    .opts = "every=1",
};

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_step_equals_the_ring),
        cmocka_unit_test(every_third_step_equals_the_oracle),
        cmocka_unit_test(parameters_are_equal_where_lag_is_0),
        cmocka_unit_test(bytes_are_the_rings_divided_by_every),
        cmocka_unit_test(a_nan_skips_the_step_of_its_worker),
        CASE(bcast, &each_step),
        CASE(replicas, &each_step),
        CASE(reruns, &each_step),
        CASE(missing, &each_step),
        CASE(killed, &each_step),
        CASE(disagree, &each_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
