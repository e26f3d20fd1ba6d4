// test_mistakes.c - mistakes that a key turns on do what their page says. The
// parameters equal those of a reference that makes the mistake by hand, and
// differ from those of a right step.

#include "horovod_ring/carriers.h"
#include "sync/replicas.h"
#include "tests/sync_cases.h"

#include "base/base.h"

#include <math.h>
#include <string.h>

#include "tests/test.h"

enum { N = 5000, STEPS = 3, CLIP = 20 }; // the clip of worker_step()

static const struct group_ops *const tcp[] = {&ring_tcp, NULL};

static const struct fixture ring = {
    .sync = "ring",
    .ops = &sync_replicas,
    .carriers = tcp,
    .opts = "",
};

// A setup of two workers, so that every sum has only one order.
static struct setup mistake(const char *key, int sgd)
{
    struct setup s = {.world = 2, .n = N, .bucket = N / 3, .sgd = sgd};
    snprintf(s.opts, sizeof s.opts, "%s", key);
    return s;
}

// `local` updates twice in a step, and the worker must equal it. `right`
// updates once.
static int twice_body(struct worker *w)
{
    struct worker local, right;
    int rc = oracle_open(&local, w) || oracle_open(&right, w);
    for (int step = 1; !rc && step <= STEPS; step++) {
        struct sync_out a, b;
        worker_integers(w, step, 60);
        worker_summed(&local, step, 60);
        worker_summed(&right, step, 60);
        rc = worker_step(w, step, &a) ||
             worker_step(&local, 2 * step - 1, &b) ||
             worker_step(&local, 2 * step, &b) ||
             worker_step(&right, step, &b) || worker_equals(w, &local);
        if (!rc && a.grad_norm != b.grad_norm)
            rc = fail("norm %g, not %g", (double)a.grad_norm,
                      (double)b.grad_norm);
    }
    if (!rc && !worker_equals(w, &right))
        rc = fail("equals a worker that updates once");
    oracle_close(&local);
    oracle_close(&right);
    return rc ? -1 : 0;
}

static void two_updates_equal_the_reference(void **state)
{
    (void)state;
    for (int sgd = 0; sgd <= 1; sgd++) {
        struct setup s = mistake("mistake=two_updates", sgd);
        assert_int_equal(world_run(&ring, &s, twice_body, NULL), 0);
    }
}

// Sets local's gradient to the sum of all ranks' gradients, each of which is
// clipped in double precision.
static void sum_of_clipped(const struct worker *w, struct worker *local,
                           int step)
{
    struct worker one = *w;
    one.job.grads = mem_alloc(N, sizeof(float));
    CHECK(one.job.grads);
    memset(local->job.grads, 0, N * sizeof(float));
    for (one.rank = 0; one.rank < w->world; one.rank++) {
        double squares = 0;
        worker_normals(&one, step);
        for (int i = 0; i < N; i++)
            squares += (double)one.job.grads[i] * (double)one.job.grads[i];
        CHECK(sqrt(squares) > 3 * CLIP); // the clip must act
        for (int i = 0; i < N; i++)
            local->job.grads[i] +=
                (float)((double)one.job.grads[i] * CLIP / sqrt(squares));
    }
    mem_free(one.job.grads);
}

static int clip_body(struct worker *w)
{
    struct worker local;
    int rc = oracle_open(&local, w);
    for (int step = 1; !rc && step <= STEPS; step++) {
        struct sync_out a, b;
        worker_normals(w, step);
        sum_of_clipped(w, &local, step);
        rc = worker_step(w, step, &a) || worker_step(&local, step, &b);
        if (!rc && fabsf(a.grad_norm - b.grad_norm) > 1e-4f)
            rc = fail("norm %g, not %g", (double)a.grad_norm,
                      (double)b.grad_norm);
        // The mean of two clipped, nearly orthogonal gradients has a norm below
        // CLIP. A right step reports the norm of the mean before clipping.
        if (!rc && (a.grad_norm > CLIP || a.grad_norm < CLIP / 2))
            rc = fail("a norm of %g", (double)a.grad_norm);
    }
    for (size_t i = 0; !rc && i < N; i++)
        if (fabsf(w->job.params[i] - local.job.params[i]) > 1e-6f)
            rc = fail("parameter %zu: %g, not %g", i, (double)w->job.params[i],
                      (double)local.job.params[i]);
    oracle_close(&local);
    return rc ? -1 : 0;
}

static void local_clipping_equals_the_reference(void **state)
{
    (void)state;
    static const char *const opts[] = {"mistake=local_clip,overlap=1",
                                       "mistake=local_clip,overlap=0",
                                       "mistake=local_clip,staging=always"};
    for (int i = 0; i < 3; i++) {
        struct setup s = mistake(opts[i], 1);
        assert_int_equal(world_run(&ring, &s, clip_body, NULL), 0);
    }
    // the reference must differ from a right step
    struct setup right = mistake("mistake=none", 1);
    assert_int_equal(world_run(&ring, &right, clip_body, NULL), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_updates_equal_the_reference),
        cmocka_unit_test(local_clipping_equals_the_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
