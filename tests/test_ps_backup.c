// test_ps_backup.c - backup=B: the first N of N+B gradients make a step, and a
// late worker goes on from the step that the others have reached.

#include "base/base.h"

#include "tests/ps_servers.h"
#include "tests/ps_workers.h"
#include "tests/test.h"

enum { STEPS = 40, TIMEOUT_S = 20 };

// Run workers of parameter servers to their end; all must do every step.
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

// Rank 0 comes to a step when all others stand at the next meeting, where they
// wait for it: each time it is late once, and then where they are. Nobody else
// is ever late.
static void late_worker_catches_up(void **state)
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

// Whoever is late, all meet after the last step, and no gradient is lost
// unseen: two of three are in each step.
static void anybody_may_be_late(void **state)
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

// Two of three end their training early: the third is told at once, whether it
// has begun a step already or not.
static void too_few_are_left(void **state)
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
        cmocka_unit_test(late_worker_catches_up),
        cmocka_unit_test(anybody_may_be_late),
        cmocka_unit_test(too_few_are_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
