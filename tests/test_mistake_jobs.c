// test_mistake_jobs.c - a mistake that a key turns on is never silent: the log,
// the table and the report name it, and no backend ignores it.

#include "base/base.h"
#include "tests/job.h"
#include "tests/job_asserts.h"

#include <stdlib.h>

enum { MOST = 64 };

static const char same[] =
    "data=text.txt model=nano layers=1 channels=48 heads=3 context=32 eval=0 "
    "log=0 warmup=0 threads=1 batch=2 workers=2";

static void every_mistake_is_named(void **state)
{
    (void)state;
    struct job j;
    job_run(
        &j, 100,
        "printf '[base]\\nsync=ring\\n[cell right]\\noverlap=1\\n[cell twice]"
        "\\nmistake=two_updates\\n[cell clip]\\nmistake=local_clip\\n"
        "[cell seed]\\nmistake=same_seed\\n"
        "[cell steps]\\nsync=sps\\nconsistency=asp\\n"
        "mistake=own_steps:1:1\\n' > m.ini && "
        "lockstep run m.ini %s steps=2 repeat=1 out=m > said",
        same);
    assert_ok(&j);
    static const char *const named[][2] = {
        {"twice", "mistake=two_updates"},
        {"clip", "mistake=local_clip"},
        {"seed", "mistake=same_seed"},
        {"steps", "mistake=own_steps:1:1"},
    };
    for (int i = 0; i < 4; i++) {
        const char *cell = named[i][0], *word = named[i][1];
        job_run(&j, 20,
                "grep 'warning: %s: WRONG ON PURPOSE' m/cells/%s/r1/log.txt "
                "&& grep '^%s .* WRONG: %s$' m/table.txt "
                "&& grep 'Warning: %s is wrong on purpose: %s' said "
                "&& grep -c 'wrong on purpose: %s' m/report.html",
                word, cell, cell, word, cell, word, word);
        assert_ok(&j);
    }
    job_run(&j, 20,
            "grep -c WRONG m/table.txt; grep -rl 'WRONG ON' "
            "m/cells/right; lockstep compare m");
    assert_prints(&j, "4\n");
    assert_prints(&j, "twice: not comparable with right, differs in mistake (");
    assert_null(strstr(j.out, "m/cells/right"));
}

// A ring waits until the deadline for the worker that has stopped. With asp the
// other workers go on without it.
static void only_a_ring_waits_for_a_stopped_worker(void **state)
{
    (void)state;
    struct job j;
    double step[MOST];
    job_run(&j, 60,
            "lockstep train %s sync=ring steps=9 timeout=2 "
            "mistake=own_steps:1:4 out=%s/hang",
            same, job_dir());
    assert_status(&j, 1);
    assert_prints(&j, "did not come within 2 s");
    job_run(&j, 60,
            "lockstep train %s sync=sps consistency=asp steps=9 "
            "mistake=own_steps:1:4 out=asp",
            same);
    assert_ok(&j);
    assert_int_equal(job_column("asp", "step", 0, step, MOST), 9);
    assert_int_equal(job_column("asp", "step", 1, step, MOST), 4);
}

static void impossible_mistakes_are_refused(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        {"sps", "mistake=two_updates", "update with the sum of all"},
        {"zero", "mistake=local_clip", "update with the sum of all"},
        {"dataparallel", "mistake=two_updates", "try: sync=ring"},
        {"dataparallel", "mistake=same_seed", "worker 0 draws the batches"},
        {"local workers=1", "mistake=same_seed", "of several workers"},
        {"ring", "mistake=own_steps:2:1", "there is no rank 2 of 2"},
        {"outer", "mistake=local_clip", "update with the sum of all"},
        {"ring", "mistake=own_steps:1", "own_steps:RANK:STEPS"},
        {"ring", "mistake=two_updates:1:2", "own_steps:RANK:STEPS"},
        {"ring", "mistake=typo", "no such mistake; try: two_updates"},
        {"ring", "mistake=own_steps:1:2", "requires fewer steps than steps=2"},
        {"ring", "mesh=pp2 mistake=local_clip",
         "needs workers with whole models"},
    };
    struct job j;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        job_run(&j, 20, "lockstep train %s sync=%s steps=2 %s out=no", same,
                cases[i][0], cases[i][1]);
        assert_status(&j, 1);
        assert_prints(&j, cases[i][2]);
        assert_false(job_has("no"));
    }
}

// A run that goes on in a way that cannot make its mistake goes on without it.
static void a_mistake_goes_on_where_it_can(void **state)
{
    (void)state;
    struct job j;
    job_run(&j, 60,
            "lockstep train %s sync=ring mistake=two_updates steps=2 save=2 "
            "out=wrong && lockstep train resume=wrong sync=ring steps=3 "
            "out=still && lockstep train resume=wrong sync=zero steps=3 "
            "out=right",
            same);
    assert_ok(&j);
    job_run(&j, 20, "grep -c 'two_updates: WRONG' still/log.txt right/log.txt");
    assert_string_equal(j.out, "still/log.txt:1\nright/log.txt:0\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_mistake_is_named),
        cmocka_unit_test(a_mistake_goes_on_where_it_can),
        cmocka_unit_test(only_a_ring_waits_for_a_stopped_worker),
        cmocka_unit_test(impossible_mistakes_are_refused),
    };
    return cmocka_run_group_tests(tests, job_text, job_cleanup);
}
