// test_elastic.c - which workers of an elastic job the launcher waits for, and
// when it takes a loss for that of the whole job.

#include "base/base.h"
#include "tests/job_of_scripts.h"

// Leaves a file, for worker 1, and does not start the worker again.
static double never(void *ctx, int rank, bool lost, char *why, size_t size)
{
    struct fixture *f = ctx;
    char path[128];
    (void)rank, (void)lost, (void)why, (void)size;
    f->asked++;
    snprintf(path, sizeof path, "%s/asked", f->dir);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
    return -1;
}

static int not_reached(void *ctx, struct job *j, int rank)
{
    (void)ctx, (void)j, (void)rank;
    return fail("started again");
}

// Worker 1 is frozen: the servers went on without it, and have ended.
static void a_frozen_worker_is_not_waited_for(void **state)
{
    (void)state;
    struct fixture f = {.grace_s = 0.2};
    open_job(&f, true);
    script(&f, JOB_SERVER, 0, "sleep 0.3");
    script(&f, JOB_WORKER, 0, "sleep 0.3");
    script(&f, JOB_WORKER, 1, "kill -STOP $$");
    assert_int_equal(job_run(f.job), 0);
    close_job(&f);
}

static double in_a_minute(void *ctx, int rank, bool lost, char *why,
                          size_t size)
{
    struct fixture *f = ctx;
    (void)rank, (void)lost, (void)why, (void)size;
    f->asked++;
    return 60;
}

// Server 0 heard of worker 1's loss before worker 0's end, so it is done.
// Server 1 heard of it later, and waits until worker 1 is back.
static void a_worker_is_too_late_once_a_server_is_done(void **state)
{
    (void)state;
    struct fixture f = {.grace_s = 0.2};
    struct job_again again = {in_a_minute, not_reached, &f};
    f.again = &again;
    open_job(&f, true);
    script(&f, JOB_SERVER, 0, "sleep 0.5");
    script(&f, JOB_SERVER, 1, "sleep 9; exit 1");
    script(&f, JOB_WORKER, 0, "sleep 0.5");
    script(&f, JOB_WORKER, 1, "exit 1");
    assert_int_equal(job_run(f.job), 0);
    assert_int_equal(f.asked, 1);
    close_job(&f);
}

// The only worker is lost when the server has the last step: nobody can serve
// it when it is back.
static void a_worker_is_not_started_again_after_its_server(void **state)
{
    (void)state;
    struct fixture f = {.grace_s = 0.2};
    struct job_again again = {in_a_minute, not_reached, &f};
    f.again = &again;
    open_job(&f, true);
    script(&f, JOB_SERVER, 0, "sleep 0.3");
    script(&f, JOB_WORKER, 0, "exit 1");
    assert_int_equal(job_run(f.job), -1);
    assert_says("no worker reached the end of the run");
    assert_int_equal(f.asked, 1);
    close_job(&f);
}

// If all workers lose their server, the job has failed, and no restart of a
// single worker is tried. If another one makes a step, only that worker is
// lost.
static void a_lost_server_is_the_loss_of_all(void **state)
{
    (void)state;
    static const char blames[] = "echo '@error server tcp://a:1: no answer' "
                                 ">&2; exit 1";
    char steps[256];
    struct fixture f = {.grace_s = 0.2};
    struct job_again again = {never, not_reached, &f};
    f.again = &again;
    open_job(&f, true);
    script(&f, JOB_SERVER, 0, "sleep 1000");
    script(&f, JOB_WORKER, 0, blames);
    script(&f, JOB_WORKER, 1, blames);
    assert_int_equal(job_run(f.job), -1);
    assert_says("server tcp://a:1: no answer");
    assert_int_equal(f.asked, 0);
    close_job(&f);
    open_job(&f, true);
    script(&f, JOB_WORKER, 0, blames);
    snprintf(steps, sizeof steps,
             "until [ -e %s/asked ]; do echo '@progress rank=1 step=2'; "
             "sleep 0.1; done",
             f.dir);
    script(&f, JOB_WORKER, 1, steps);
    assert_int_equal(job_run(f.job), 0);
    assert_int_equal(f.asked, 1);
    close_job(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_frozen_worker_is_not_waited_for),
        cmocka_unit_test(a_worker_is_too_late_once_a_server_is_done),
        cmocka_unit_test(a_worker_is_not_started_again_after_its_server),
        cmocka_unit_test(a_lost_server_is_the_loss_of_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
