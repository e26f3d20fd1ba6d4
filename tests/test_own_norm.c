// test_own_norm.c - own_norm=1 gives the norm of each worker's own gradient,
// whatever the buckets, and changes nothing else.

#include "horovod_ring/carriers.h"
#include "sync/replicas.h"
#include "tests/sync_cases.h"

#include "base/base.h"

#include <math.h>
#include <string.h>

#include "tests/test.h"

enum { N = 5000, STEPS = 3 };

static const struct group_ops *const tcp[] = {&ring_tcp, NULL};

static const struct fixture ring = {
    .sync = "ring",
    .ops = &sync_replicas,
    .carriers = tcp,
    .opts = "",
};

static struct setup setup(const char *opts)
{
    struct setup s = {.world = 3, .n = N, .first = 100, .bucket = N / 4};
    snprintf(s.opts, sizeof s.opts, "%s", opts);
    return s;
}

// worker_step() scales the sum by 1/world, so a worker's own gradient by 1.
static int norms_body(struct worker *w)
{
    struct worker local;
    int rc = oracle_open(&local, w);
    for (int step = 1; !rc && step <= STEPS; step++) {
        struct sync_out a, b;
        double squares = 0;
        worker_integers(w, step, 60);
        worker_summed(&local, step, 60);
        for (int i = 0; i < N; i++)
            squares += (double)w->job.grads[i] * (double)w->job.grads[i];
        rc = worker_step(w, step, &a) || worker_step(&local, step, &b) ||
             worker_equals(w, &local);
        double want = w->settings.own_norm ? sqrt(squares) : 0;
        if (!rc && fabs(a.own_norm - want) > 1e-6 * want)
            rc = fail("own norm %g, not %g", a.own_norm, want);
    }
    oracle_close(&local);
    return rc ? -1 : 0;
}

static void norms_are_those_before_the_sum(void **state)
{
    (void)state;
    static const char *const opts[] = {"own_norm=1,overlap=1",
                                       "own_norm=1,overlap=0", "own_norm=0"};
    for (int i = 0; i < 3; i++) {
        struct setup s = setup(opts[i]);
        assert_int_equal(world_run(&ring, &s, norms_body, NULL), 0);
    }
}

static int refused_body(struct worker *w)
{
    if (!worker_begin(w))
        return fail("was not refused");
    return strstr(fail_message(), "own_norm=1: reads gradients in host memory")
               ? 0
               : -1;
}

static void host_copies_are_refused(void **state)
{
    (void)state;
    struct setup s = setup("own_norm=1,staging=always");
    s.closed = true;
    assert_int_equal(world_run(&ring, &s, refused_body, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(norms_are_those_before_the_sum),
        cmocka_unit_test(host_copies_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
