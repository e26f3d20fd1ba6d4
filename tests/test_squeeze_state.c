// test_squeeze_state.c - what is sent and what is kept add up, over all workers
// and servers; a resumed run has the same bits, and no residual keeps a NaN.

#include "tests/kept_slots.h"
#include "tests/squeeze_ways.h"

#include "base/base.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/test.h"

// ---- sum(sent) + residuals = sum(gradients)

// The gradients of a step, and the sum that sync.c updates with: SGD with a
// rate of 1 and no momentum subtracts it from the parameters.
static int plain_sgd(struct worker *w)
{
    w->optim.momentum = 0;
    w->job.velocity_decay = 0;
    w->optim.weight_decay = 0;
    return worker_begin(w) || sync_bcast(w->sync) ? -1 : 0;
}

enum { STEPS = 5 };

static int conserves_body(struct worker *w)
{
    struct visitor x = {w};
    double *want = mem_alloc(N, sizeof *want);
    if (!want || plain_sgd(w))
        return -1;
    for (int step = 1; step <= STEPS; step++) {
        const struct sync_in in = {.step = step, .lr = 1, .grad_scale = 1};
        struct sync_out out;
        worker_summed(w, step, 50);
        for (size_t i = 0; i < N; i++)
            want[i] += (double)w->job.grads[i];
        worker_integers(w, step, 50);
        for (int b = 0; b < w->job.nbuckets; b++)
            if (worker_ready(w, b))
                return -1;
        if (sync_step(w->sync, &in, &out))
            return -1;
    }
    if (sync_save(w->sync, keep, &x) || cluster_barrier(w->cluster))
        return -1;
    bool exact = w->settings.squeeze == SQUEEZE_TOPK;
    for (size_t i = 0; i < N; i++) {
        double have = kept_sum(i) - (double)w->job.params[i];
        if (exact ? have != want[i] : fabs(have - want[i]) > 1e-3)
            return fail("element %zu: %.9g was sent or kept, of %.9g", i, have,
                        want[i]);
    }
    mem_free(want);
    return 0;
}

static void what_is_sent_and_kept_is_all(void **state)
{
    (void)state;
    for (int i = 0; i < SUMS; i++)
        for (int world = 1; world <= CASE_WORLDS; world++) {
            struct setup s = {.world = world,
                              .n = N,
                              .first = 1,
                              .bucket = 300,
                              .sgd = true,
                              .closed = true};
            memset(kept, 0, sizeof *kept);
            assert_int_equal(world_run(ways[i], &s, conserves_body, NULL), 0);
        }
}

static int train(struct worker *w, int from, int to)
{
    for (int step = from; step <= to; step++) {
        struct sync_out out;
        worker_normals(w, step);
        if (worker_step(w, step, &out))
            return -1;
    }
    return 0;
}

// ---- resume

static int save_body(struct worker *w)
{
    struct visitor x = {w};
    if (train(w, 1, 3) || sync_save(w->sync, keep, &x))
        return -1;
    if (w->rank == 0)
        memcpy(kept->params, w->job.params, sizeof kept->params);
    if (train(w, 4, 6))
        return -1;
    w->result = hash_bytes(w->job.params, N * sizeof(float));
    return 0;
}

static int resume_body(struct worker *w)
{
    struct visitor x = {w};
    if (w->rank == 0)
        memcpy(w->job.params, kept->params, sizeof kept->params);
    if (worker_begin(w) || sync_bcast(w->sync))
        return -1;
    sync_resume(w->sync, 3);
    if (sync_load(w->sync, give, &x) || train(w, 4, 6))
        return -1;
    w->result = hash_bytes(w->job.params, N * sizeof(float));
    return 0;
}

static void a_resumed_run_has_the_same_bits(void **state)
{
    (void)state;
    for (int i = 0; i < WAYS; i++)
        for (int world = 1; world <= CASE_WORLDS; world++) {
            uint64_t want[CASE_WORLDS], have[CASE_WORLDS];
            struct setup s = {.world = world, .n = N, .bucket = 300};
            snprintf(s.opts, sizeof s.opts, "squeeze_after=%d",
                     i < SUMS ? 2 * (i % 3) : 0);
            memset(kept, 0, sizeof *kept);
            assert_int_equal(world_run(ways[i], &s, save_body, want), 0);
            s.closed = true;
            assert_int_equal(world_run(ways[i], &s, resume_body, have), 0);
            for (int r = 0; r < world; r++)
                assert_true(have[r] == want[r]);
        }
}

// In another world the residuals still have the same sum, times w'/w.
static int other_world_body(struct worker *w)
{
    struct visitor x = {w};
    if (worker_begin(w) || sync_bcast(w->sync) ||
        sync_load(w->sync, give, &x) || cluster_barrier(w->cluster))
        return -1;
    memset(kept->given, 0, sizeof kept->given); // all have loaded
    return cluster_barrier(w->cluster) || sync_save(w->sync, keep, &x) ? -1 : 0;
}

static void another_world_divides_the_residuals(void **state)
{
    (void)state;
    static const struct fixture *const some[] = {&topk, &sign, &sign_sps, &demo,
                                                 &frozen};
    static double before[N];
    for (int k = 0; k < 5; k++)
        for (int from = 1; from <= 3; from++)
            for (int to = 1; to <= CASE_WORLDS; to++) {
                struct setup s = {.world = from, .n = N, .bucket = 300};
                memset(kept, 0, sizeof *kept);
                assert_int_equal(world_run(some[k], &s, save_body, NULL), 0);
                for (size_t i = 0; i < N; i++)
                    before[i] = kept_sum(i);
                s.world = to;
                s.closed = true;
                assert_int_equal(world_run(some[k], &s, other_world_body, NULL),
                                 0);
                for (size_t i = 0; i < N; i++)
                    assert_true(fabs(kept_sum(i) - before[i] * to / from) <
                                1e-5 * (1 + fabs(before[i])));
            }
}

static int names_body(struct worker *w)
{
    static const char *const want[] = {"exp_avg", "exp_avg_sq",
                                       "residual_of_sums",
                                       "residual_of_worker_0",
                                       "residual_of_worker_1"};
    return worker_has_slots(w, want, 5);
}

static int no_slots_body(struct worker *w)
{
    return sync_slots(w->sync) == 2 ? 0 : fail("%d slots", sync_slots(w->sync));
}

static void residuals_are_slots(void **state)
{
    (void)state;
    struct setup s = {.world = 2, .n = 10};
    assert_int_equal(world_run(&sign, &s, names_body, NULL), 0);
    snprintf(s.opts, sizeof s.opts, "feedback=0");
    assert_int_equal(world_run(&sign, &s, no_slots_body, NULL), 0);
}

// ---- a skipped step leaves no trace

// Two runs: one has a step with a NaN of one worker. After the same other
// steps both have the same residuals and parameters.
static int bad_step(struct worker *w)
{
    struct sync_out out;
    worker_normals(w, 50);
    if (w->rank == w->world - 1)
        w->job.grads[N / 2] = w->world % 2 ? NAN : INFINITY;
    if (worker_step(w, 2, &out))
        return -1;
    return out.skipped ? 0 : fail("not skipped");
}

static int with_or_without(struct worker *w, int (*between)(struct worker *w))
{
    struct visitor x = {w};
    if (train(w, 1, 1) || (between && between(w)))
        return -1;
    sync_resume(w->sync, 1); // so that both draw the same numbers
    if (train(w, 2, 3) || sync_save(w->sync, keep, &x) ||
        cluster_barrier(w->cluster))
        return -1;
    w->result = hash_more(hash_bytes(w->job.params, N * sizeof(float)),
                          kept->at, sizeof kept->at);
    return 0;
}

static int with_body(struct worker *w)
{
    return with_or_without(w, bad_step);
}

static int without_body(struct worker *w)
{
    return with_or_without(w, NULL);
}

static void no_residual_keeps_a_nan(void **state)
{
    (void)state;
    for (int i = 0; i < WAYS; i++)
        for (int world = 1; world <= CASE_WORLDS; world++) {
            uint64_t with[CASE_WORLDS], without[CASE_WORLDS];
            struct setup s = {.world = world, .n = N, .bucket = 300};
            memset(kept, 0, sizeof *kept);
            assert_int_equal(world_run(ways[i], &s, with_body, with), 0);
            memset(kept, 0, sizeof *kept);
            assert_int_equal(world_run(ways[i], &s, without_body, without), 0);
            assert_true(with[0] == without[0]);
        }
}

// Gradients that a script can make, too.
static float oracle_gradient(int rank, int step, size_t i)
{
    return (float)((int)((i * 7919 + i * i * 31 + (size_t)step * 104729 +
                          (size_t)rank * 31337) %
                         97) -
                   48);
}

// ---- five steps with velocities, from the formulas of the paper

// One worker of Deep Gradient Compression: u = m u + g; v = v + u. The k
// largest of v are sent, and u and v are cleared there. Ties go to the lower
// index.
struct dgc {
    double u[N], v[N];
};

static void dgc_step(struct dgc *d, const float *g, size_t k, double sum[N])
{
    for (size_t i = 0; i < N; i++) {
        d->u[i] = 0.5 * d->u[i] + (double)g[i];
        d->v[i] += d->u[i];
    }
    for (; k > 0; k--) {
        size_t most = 0;
        for (size_t i = 1; i < N; i++)
            if (fabs(d->v[i]) > fabs(d->v[most]))
                most = i;
        sum[most] += d->v[most];
        d->u[most] = d->v[most] = 0;
    }
}

// Gradients are multiples of 64, so that halves of halves are exact.
static int dgc_body(struct worker *w)
{
    struct dgc *all = mem_alloc((size_t)w->world, sizeof *all);
    float *g = mem_alloc(N, sizeof *g);
    if (!all || !g)
        return -1;
    w->optim.momentum = w->optim.weight_decay = 0;
    w->job.velocity_decay = 0.5f;
    if (worker_begin(w) || sync_bcast(w->sync))
        return -1;
    size_t k = squeeze_entries(&w->settings, N);
    for (int step = 1; step <= STEPS; step++) {
        const struct sync_in in = {.step = step, .lr = 1, .grad_scale = 1};
        struct sync_out out;
        double want[N] = {0};
        for (int r = 0; r < w->world; r++) {
            for (size_t i = 0; i < N; i++)
                g[i] = 64 * oracle_gradient(r, step, i);
            dgc_step(&all[r], g, k, want);
            if (r == w->rank)
                memcpy(w->job.grads, g, N * sizeof *g);
        }
        for (int b = 0; b < w->job.nbuckets; b++)
            if (worker_ready(w, b))
                return -1;
        if (sync_step(w->sync, &in, &out))
            return -1;
        for (size_t i = 0; i < N; i++)
            if ((double)w->job.grads[i] != want[i])
                return fail("step %d, element %zu: %g, want %g", step, i,
                            (double)w->job.grads[i], want[i]);
    }
    mem_free(all);
    mem_free(g);
    return 0;
}

static void five_steps_with_velocities(void **state)
{
    (void)state;
    for (int world = 1; world <= CASE_WORLDS; world++) {
        struct setup s = {.world = world,
                          .n = N,
                          .bucket = N,
                          .sgd = true,
                          .closed = true,
                          .opts = "slice_kb=8"}; // one slice
        assert_int_equal(world_run(&moving, &s, dgc_body, NULL), 0);
        assert_int_equal(world_run(&moving_sps, &s, dgc_body, NULL), 0);
    }
}

// ---- five steps of PowerSGD, against tests/oracle/powersgd.py

enum { ORACLE_STEPS = 5, ORACLE_WORLD = 2 };

// Gives the first Q, and nothing else.
static int give_first_q(void *ctx, int slot, size_t off, float *v, size_t n)
{
    const struct visitor *x = ctx;
    char name[SYNC_SLOT_NAME];
    (void)off;
    sync_slot_name(x->w->sync, slot, name);
    for (size_t i = 0; i < n; i++)
        v[i] = strcmp(name, "low_rank_q") ? 0 : (float)(i * 31 % 17) - 8;
    return strncmp(name, "residual", 8) ? 0 : SYNC_ABSENT;
}

static int oracle_body(struct worker *w)
{
    struct visitor x = {w};
    static double want[N];
    double off = 0, size = 0;
    if (read_oracle("tests/golden/powersgd.txt", want) || plain_sgd(w) ||
        sync_load(w->sync, give_first_q, &x))
        return -1;
    for (int step = 1; step <= ORACLE_STEPS; step++) {
        const struct sync_in in = {.step = step, .lr = 1, .grad_scale = 0.5f};
        struct sync_out out;
        for (size_t i = 0; i < N; i++)
            w->job.grads[i] = oracle_gradient(w->rank, step, i);
        for (int b = 0; b < w->job.nbuckets; b++)
            if (worker_ready(w, b))
                return -1;
        if (sync_step(w->sync, &in, &out))
            return -1;
    }
    for (size_t i = 0; i < N; i++) {
        off = fmax(off, fabs(-(double)w->job.params[i] - want[i]));
        size = fmax(size, fabs(want[i]));
    }
    return off < 1e-4 * size
               ? 0
               : fail("off by %g of %g: sums of five mean gradients", off,
                      size);
}

static void five_steps_equal_pytorchs(void **state)
{
    (void)state;
    struct setup s = {.world = ORACLE_WORLD,
                      .n = N,
                      .bucket = 300,
                      .sgd = true,
                      .closed = true};
    assert_int_equal(world_run(&power, &s, oracle_body, NULL), 0);
}

// ---- five steps of DeMo, against tests/oracle/demo.py

// The loss scale and the number of micro-batches, which grad_scale= undoes, do
// not count, and no norm is clipped.
static int demo_body(struct worker *w)
{
    static double want[N];
    w->optim.momentum = 0;
    if (read_oracle("tests/golden/demo.txt", want) || worker_begin(w))
        return -1;
    for (size_t i = 0; i < N; i++)
        w->job.params[i] = 1;
    if (sync_bcast(w->sync))
        return -1;
    for (int step = 1; step <= ORACLE_STEPS; step++) {
        const struct sync_in in = {.step = step,
                                   .lr = 0.125f,
                                   .grad_scale = 0.01f};
        struct sync_out out;
        for (size_t i = 0; i < N; i++)
            w->job.grads[i] = oracle_gradient(w->rank, step, i);
        for (int b = 0; b < w->job.nbuckets; b++)
            if (worker_ready(w, b))
                return -1;
        if (sync_step(w->sync, &in, &out))
            return -1;
    }
    for (size_t i = 0; i < N; i++)
        if (fabs((double)w->job.params[i] - want[i]) > 1e-6)
            return fail("element %zu: %.9g, want %.9g", i,
                        (double)w->job.params[i], want[i]);
    return 0;
}

static void five_steps_of_demo_are_the_papers(void **state)
{
    (void)state;
    struct setup s = {.world = ORACLE_WORLD,
                      .n = N,
                      .bucket = 300,
                      .sgd = true,
                      .closed = true};
    assert_int_equal(world_run(&demo, &s, demo_body, NULL), 0);
    assert_int_equal(world_run(&demo_staged, &s, demo_body, NULL), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_sent_and_kept_is_all),
        cmocka_unit_test(a_resumed_run_has_the_same_bits),
        cmocka_unit_test(another_world_divides_the_residuals),
        cmocka_unit_test(residuals_are_slots),
        cmocka_unit_test(no_residual_keeps_a_nan),
        cmocka_unit_test(five_steps_with_velocities),
        cmocka_unit_test(five_steps_equal_pytorchs),
        cmocka_unit_test(five_steps_of_demo_are_the_papers),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, kept_open, NULL);
}
