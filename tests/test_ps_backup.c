// test_ps_backup.c - backup=B: the first N of N+B gradients make a step, and a
// late worker goes on from the step that the others have reached.

#include "base/base.h"

#include "tests/ps_servers.h"
#include "tests/ps_workers.h"
#include "tests/test.h"

enum { STEPS = 40, TIMEOUT_S = 20 };

// Runs workers with `servers` servers to their end. All must do every step.
static void run(struct ps_workers *workers, int servers)
{
    pid_t pid[PS_WORKERS_MOST];
    struct ps_servers s;
    assert_int_equal(ps_servers_start(&s, servers, 1, TIMEOUT_S, ""), 0);
    workers->progress = ps_progress_make();
    workers->endpoints = s.endpoints;
    workers->curve = "";
    workers->timeout_s = TIMEOUT_S;
    workers->steps = STEPS;
    for (int r = 0; r < workers->world; r++)
        pid[r] = ps_workers_start(workers, r);
    for (int r = 0; r < workers->world; r++) {
        ps_workers_join(pid[r]);
        if (workers->progress->end[r].rc)
            print_message("rank %d: %s\n", r, workers->progress->end[r].why);
        assert_int_equal(workers->progress->end[r].rc, 0);
        assert_int_equal(workers->progress->step[r], STEPS);
    }
    assert_int_equal(ps_servers_stop(&s), servers);
}

// After every `meet` steps all workers wait for each other. Rank 0 begins a
// step only when all others wait for it. So it is late once for each of these
// waits, and then has caught up. No other worker is ever late.
static void a_late_worker_catches_up(void **state)
{
    (void)state;
    for (int servers = 1; servers <= 2; servers++) {
        struct ps_workers workers = {.world = 3,
                                     .opts = "backup=1",
                                     .meet = 10,
                                     .late = true};
        run(&workers, servers);
        for (int r = 0; r < workers.world; r++) {
            int late = r ? 0 : STEPS / workers.meet;
            assert_int_equal(workers.progress->end[r].dropped, late);
            assert_int_equal(workers.progress->end[r].taken, r ? STEPS : late);
        }
    }
}

// Any worker may be late. All end after the same step, and each step uses the
// gradients of two workers of three.
static void any_worker_may_be_late(void **state)
{
    (void)state;
    for (int servers = 1; servers <= 2; servers++) {
        struct ps_workers workers = {.world = 3,
                                     .opts = "backup=1",
                                     .meet = STEPS};
        int used = 0;
        run(&workers, servers);
        for (int r = 0; r < workers.world; r++)
            used += workers.progress->end[r].taken -
                    workers.progress->end[r].dropped;
        assert_int_equal(used, 2 * STEPS);
    }
}

// Two workers of three end their training early. The third fails at once,
// whether it has already begun a step or not.
static void too_few_workers_end_the_job(void **state)
{
    (void)state;
    struct ps_servers s;
    pid_t pid[3];
    assert_int_equal(ps_servers_start(&s, 1, 1, TIMEOUT_S, ""), 0);
    struct ps_workers workers = {.progress = ps_progress_make(),
                                 .world = 3,
                                 .opts = "backup=1",
                                 .endpoints = s.endpoints,
                                 .curve = "",
                                 .timeout_s = TIMEOUT_S,
                                 .steps = 10};
    struct ps_workers longer = workers;
    longer.steps = 20;
    for (int r = 0; r < 3; r++)
        pid[r] = ps_workers_start(r < 2 ? &workers : &longer, r);
    for (int r = 0; r < 3; r++)
        ps_workers_join(pid[r]);
    assert_int_equal(workers.progress->end[2].rc, -1);
    assert_non_null(strstr(workers.progress->end[2].why,
                           "left before step 11, which others"));
    assert_int_equal(ps_servers_stop(&s), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_late_worker_catches_up),
        cmocka_unit_test(any_worker_may_be_late),
        cmocka_unit_test(too_few_workers_end_the_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
