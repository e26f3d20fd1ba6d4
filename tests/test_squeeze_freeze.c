// test_squeeze_freeze.c - freeze=: the first steps are those of AdamW, the
// others those of 1-bit Adam. That resumed runs have the same bits, and that no
// residual keeps a NaN, test_squeeze_state.c tests.

#include "tests/kept_slots.h"
#include "tests/squeeze_ways.h"

#include "sync/law.h"

#include <math.h>

#include "tests/test.h"

enum { FREEZE = 2, STEPS = 5 };

static const struct fixture *const signs[] = {&sign, &sign_shm, &sign_staged,
                                              &sign_sps};
enum { SIGNS = sizeof signs / sizeof *signs };

static int give_all(struct worker *w)
{
    for (int b = 0; b < w->job.nbuckets; b++)
        if (worker_ready(w, b))
            return -1;
    return 0;
}

// ---- the first steps are those of AdamW

static int first_body(struct worker *w)
{
    struct worker local;
    int rc = oracle_open(&local, w);
    for (int step = 1; !rc && step <= FREEZE + 1; step++) {
        struct sync_out a, b;
        worker_integers(w, step, 50);
        worker_summed(&local, step, 50);
        rc = worker_step(w, step, &a) || worker_step(&local, step, &b);
        bool equal = !rc && !worker_equals(w, &local);
        if (!rc && equal != (step <= FREEZE))
            rc = fail("step %d is %s AdamW's", step, equal ? "" : "not");
        if (!rc && step <= FREEZE && a.grad_norm != b.grad_norm)
            rc = fail("step %d: norm %.9g, not %.9g", step, (double)a.grad_norm,
                      (double)b.grad_norm);
    }
    oracle_close(&local);
    return rc ? -1 : 0;
}

static void the_first_steps_are_adamws(void **state)
{
    (void)state;
    for (int i = 0; i < SIGNS; i++)
        for (int world = 1; world <= CASE_WORLDS; world++) {
            struct setup s = {.world = world,
                              .n = N,
                              .bucket = 300,
                              .opts = "freeze=2"};
            assert_int_equal(world_run(signs[i], &s, first_body, NULL), 0);
        }
}

// ---- bytes

static int bytes_body(struct worker *w)
{
    const struct law_step whole = {.world = w->world,
                                   .cut = w->buckets,
                                   .count = w->job.nbuckets,
                                   .grain = 1,
                                   .sum_bytes = sizeof(float)};
    for (int step = 1; step <= STEPS; step++) {
        struct group_stats sum;
        struct sync_out out;
        uint64_t sent, got, before = w->sync->stats.bytes_out;
        law_step_bytes(&whole, w->rank, &sum);
        law(&w->job, w->rank, w->world, DTYPE_F32, &sent, &got);
        uint64_t want = step <= FREEZE ? sum.bytes_out : sent;
        worker_normals(w, step);
        if (worker_step(w, step, &out))
            return -1;
        if (w->sync->stats.bytes_out - before != want)
            return fail("step %d: %llu bytes, not %llu", step,
                        (unsigned long long)w->sync->stats.bytes_out - before,
                        (unsigned long long)want);
    }
    return 0;
}

static void bytes_are_those_of_the_law(void **state)
{
    (void)state;
    for (int world = 1; world <= CASE_WORLDS; world++) {
        struct setup s = {.world = world,
                          .n = 7001,
                          .first = 301,
                          .bucket = 1501,
                          .opts = "freeze=2"};
        assert_int_equal(world_run(&sign, &s, bytes_body, NULL), 0);
    }
}

// ---- what is sent and what is kept are all that should have been sent

// The sums over the steps after the freeze: of what workers had to send, and of
// what came out as the first moment, both as sums of gradients.
struct sums {
    double due[N], sent[N];
};

// Adds what the sum of gradients in `sum` and the first moment m make due.
static void add_due(struct sums *sums, const float *m, const float *sum,
                    const struct worker *w)
{
    double beta = (double)w->optim.beta1;
    for (size_t i = 0; i < N; i++)
        sums->due[i] += (1 - beta) * (double)sum[i] +
                        beta * (double)m[i] / (double)w->job.grad_scale;
}

static int conserves_body(struct worker *w)
{
    struct visitor x = {w};
    struct sums *sums = mem_alloc(1, sizeof *sums);
    if (!sums)
        return -1;
    for (int step = 1; step <= STEPS; step++) {
        const float *m = w->sync->rule.slots[0];
        const struct sync_in in = {.step = step,
                                   .lr = 0.01f,
                                   .grad_scale = w->job.grad_scale};
        struct sync_out out;
        worker_summed(w, step, 50);
        if (step > FREEZE)
            add_due(sums, m, w->job.grads, w);
        worker_integers(w, step, 50);
        if (give_all(w) || sync_step(w->sync, &in, &out))
            return -1;
        for (size_t i = 0; step > FREEZE && i < N; i++)
            sums->sent[i] += (double)m[i] / (double)w->job.grad_scale;
    }
    if (sync_save(w->sync, keep, &x) || cluster_barrier(w->cluster))
        return -1;
    for (size_t i = 0; i < N; i++)
        if (fabs(sums->due[i] - sums->sent[i] - kept_sum(i)) > 1e-3)
            return fail("element %zu: %.9g was due, %.9g sent, %.9g kept", i,
                        sums->due[i], sums->sent[i], kept_sum(i));
    mem_free(sums);
    return 0;
}

static void what_is_sent_and_kept_is_all(void **state)
{
    (void)state;
    for (int i = 0; i < SIGNS; i++)
        for (int world = 1; world <= CASE_WORLDS; world++) {
            struct setup s = {.world = world,
                              .n = N,
                              .first = 1,
                              .bucket = 300,
                              .opts = "freeze=2"};
            memset(kept, 0, sizeof *kept);
            assert_int_equal(world_run(signs[i], &s, conserves_body, NULL), 0);
        }
}

// ---- five steps, against tests/oracle/onebit_adam.py

enum { ORACLE_WORLD = 2 };

// The gradients of the script; a loss scale and micro-batches multiply them.
static float oracle_gradient(int rank, int step, size_t i)
{
    size_t k =
        (i * 7919 + i * i * 31 + (size_t)step * 104729 + (size_t)rank * 31337) %
        97;
    return i % 50 == 7 && step <= FREEZE ? 0 : 4 * ((float)k - 48.5f);
}

enum { CLIP = 10 };

static double norm_of(const float *v)
{
    double sum = 0;
    for (size_t i = 0; i < N; i++)
        sum += (double)v[i] * (double)v[i];
    return sqrt(sum);
}

// The norm of a step after the freeze is that of the moment before clipping.
static int check_norm(const struct worker *w, double norm)
{
    double want = norm_of(w->job.grads) * (double)w->job.grad_scale;
    double least = norm_of(w->sync->rule.slots[0]);
    return fabs(norm / want - 1) < 1e-6 && norm > CLIP && least < CLIP + 1e-4
               ? 0
               : fail("norm %g, want %g; clipped %g", norm, want, least);
}

static int oracle_body(struct worker *w)
{
    static double want[N];
    struct sync_out out;
    w->job.grad_scale = 1.0f / 16 / ORACLE_WORLD;
    if (read_oracle("tests/golden/onebit_adam.txt", want) || worker_begin(w))
        return -1;
    for (size_t i = 0; i < N; i++)
        w->job.params[i] = 1;
    if (sync_bcast(w->sync))
        return -1;
    for (int step = 1; step <= STEPS; step++) {
        const struct sync_in in = {.step = step,
                                   .lr = 0.125f,
                                   .grad_scale = w->job.grad_scale,
                                   .clip = CLIP};
        for (size_t i = 0; i < N; i++)
            w->job.grads[i] = oracle_gradient(w->rank, step, i);
        if (give_all(w) || sync_step(w->sync, &in, &out))
            return -1;
    }
    for (size_t i = 0; i < N; i++)
        if (fabs((double)w->job.params[i] - want[i]) > 1e-5)
            return fail("element %zu: %.9g, want %.9g", i,
                        (double)w->job.params[i], want[i]);
    return check_norm(w, (double)out.grad_norm);
}

static void five_steps_are_the_papers(void **state)
{
    (void)state;
    struct setup s = {.world = ORACLE_WORLD,
                      .n = N,
                      .first = 300,
                      .bucket = 300,
                      .closed = true,
                      .opts = "freeze=2"};
    for (int i = 0; i < SIGNS - 1; i++) // a server has another order
        assert_int_equal(world_run(signs[i], &s, oracle_body, NULL), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_steps_are_adamws),
        cmocka_unit_test(bytes_are_those_of_the_law),
        cmocka_unit_test(what_is_sent_and_kept_is_all),
        cmocka_unit_test(five_steps_are_the_papers),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, kept_open, NULL);
}
