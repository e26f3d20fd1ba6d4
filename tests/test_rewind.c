// test_rewind.c - a run has one line of history: after it goes back to an
// earlier checkpoint, no later checkpoint of the old line is taken for its own.

#include "base/base.h"
#include "tests/job_asserts.h"

static const char tiny[] =
    "data=text.txt model=nano layers=1 channels=32 heads=2 context=16 batch=2 "
    "eval=0 log=0 warmup=0 timeout=30 threads=1 samples=0 trace=off";

// A run of 12 steps with checkpoints 4, 8 and 12.
static void begin(const char *out)
{
    struct job j;
    job_run(&j, 30,
            "rm -rf %s; lockstep train %s steps=12 save=4 keep=9 out=%s", out,
            tiny, out);
    assert_ok(&j);
}

static void assert_lists(const char *out, const char *want)
{
    struct job j;
    job_run(&j, 20, "cd %s; echo checkpoint-* $(cat latest)", out);
    assert_string_equal(j.out, want);
}

// Going back to an earlier checkpoint with another lr is the usual cure of a
// run that diverges.
static void a_run_goes_back(void **state)
{
    (void)state;
    struct job j;
    begin("back");
    job_run(&j, 30,
            "lockstep train resume=back/checkpoint-4 lr=0.0005 steps=10 save=3 "
            "keep=2 out=back");
    assert_ok(&j);
    assert_prints(&j, "back/checkpoint-12 is not in the past of this run: "
                      "renamed to back/checkpoint-12.aside-1");
    assert_lists("back", "checkpoint-10 checkpoint-12.aside-1 "
                         "checkpoint-8.aside-1 checkpoint-9 checkpoint-10\n");
    job_run(&j, 30, "lockstep train resume=auto steps=11 out=back");
    assert_ok(&j);
    assert_prints(&j, "resuming from back/checkpoint-10, step 10");
    job_run(&j, 30,
            "lockstep train resume=back/checkpoint-10 steps=10 out=back");
    assert_ok(&j);
    job_run(&j, 30,
            "lockstep train resume=back/checkpoint-10 steps=12 out=back; "
            "lockstep train resume=back/checkpoint-12.aside-1 steps=13 "
            "keep=all out=back");
    assert_ok(&j);
    assert_prints(&j, "back/checkpoint-12 is not in the past of this run: "
                      "renamed to back/checkpoint-12.aside-2");
}

// What a save left that was killed before, or while, it removed an old
// checkpoint goes when the run goes on, even if nothing is left to do.
static void what_a_killed_save_left_goes(void **state)
{
    (void)state;
    struct job j;
    begin("killed");
    job_run(&j, 30,
            "mv killed/checkpoint-4 killed/.old-4; mkdir killed/.next-12; "
            "lockstep train resume=auto steps=12 out=killed && ls -a killed");
    assert_ok(&j);
    assert_null(strstr(j.out, ".old-4"));
    assert_null(strstr(j.out, ".next-12"));
    assert_lists("killed", "checkpoint-12 checkpoint-8 checkpoint-12\n");
    job_run(&j, 30, "lockstep train resume=auto save=4 keep=1 out=killed");
    assert_ok(&j);
    assert_lists("killed", "checkpoint-12 checkpoint-12\n");
}

// The job dies before it has saved anything of the new line.
static void a_restart_stays_on_the_line(void **state)
{
    (void)state;
    struct job j;
    begin("line");
    job_run(&j, 30,
            "lockstep train resume=line/checkpoint-8 lr=0.0005 steps=10 "
            "save=10 restarts=1 inject=kill:2 out=line");
    assert_ok(&j);
    assert_prints(&j, "restart 1 of 1 in 1 s, from checkpoint-8");
    assert_prints(&j, "resuming from line/checkpoint-8, step 8");
    assert_lists("line", "checkpoint-10 checkpoint-12.aside-1 checkpoint-4 "
                         "checkpoint-8 checkpoint-10\n");
}

// A checkpoint of another run has the step of one in out=.
static void another_run_is_another_line(void **state)
{
    (void)state;
    struct job j;
    begin("one");
    begin("two");
    job_run(&j, 30,
            "lockstep train resume=one/checkpoint-8 steps=9 save=9 "
            "inject=kill:1 out=two; ls two");
    assert_null(strstr(j.out, "latest"));
    assert_prints(&j, "checkpoint-8.aside-1");
    job_run(&j, 30,
            "lockstep train resume=one/checkpoint-8 steps=9 save=9 out=two");
    assert_ok(&j);
    assert_lists("two", "checkpoint-12.aside-1 checkpoint-4.aside-1 "
                        "checkpoint-8.aside-1 checkpoint-9 checkpoint-9\n");
}

// A run that has nothing to do makes no folder; in its own folder it is done.
static void a_finished_run_does_not_go_on_elsewhere(void **state)
{
    (void)state;
    struct job j;
    begin("whole");
    job_run(&j, 30, "lockstep train resume=whole out=other");
    assert_prints(&j, "resume: whole/checkpoint-12 is of step 12 of 12, so "
                      "nothing is left to do; try: a larger steps=");
    assert_false(job_has("other"));
    job_run(&j, 30, "lockstep train resume=auto out=whole");
    assert_ok(&j);
}

// A run goes on with one server where it had three.
static void one_server_goes_on(void **state)
{
    (void)state;
    struct job j;
    job_run(&j, 60,
            "lockstep train %s sync=dps workers=2 servers=3 batch=1 steps=2 "
            "save=2 out=three && lockstep train resume=three sync=sps steps=3 "
            "out=one_server",
            tiny);
    assert_ok(&j);
}

// The last save was killed between its folder's new name and `latest`.
static void latest_rules(void **state)
{
    (void)state;
    struct job j;
    begin("rules");
    job_run(&j, 30,
            "printf checkpoint-8 > rules/latest; "
            "lockstep train resume=auto steps=9 save=9 out=rules");
    assert_ok(&j);
    assert_prints(&j, "resuming from rules/checkpoint-8, step 8");
    assert_lists("rules", "checkpoint-12.aside-1 checkpoint-4 checkpoint-8 "
                          "checkpoint-9 checkpoint-9\n");
}

// A run saves after every step and keeps one checkpoint. Readers of it find the
// newest one, and it stays while they read it.
static void readers_of_a_running_job(void **state)
{
    (void)state;
    struct job j;
    job_run(&j, 100,
            "lockstep train %s steps=1000000 save=1 keep=1 out=live & p=$!; "
            "until [ -e live/latest ]; do sleep 0.02; done; "
            "for i in 1 2 3 4 5 6; do lockstep sample live tokens=1 || break; "
            "trainer resume=live steps=1 save=0 out=reader; done; kill $p; "
            "wait $p; echo read $i",
            tiny);
    assert_prints(&j, "read 6");
    assert_null(strstr(j.out, "No such file"));
    assert_null(strstr(j.out, "damaged"));
    assert_int_equal(job_processes(20), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_goes_back),
        cmocka_unit_test(what_a_killed_save_left_goes),
        cmocka_unit_test(a_restart_stays_on_the_line),
        cmocka_unit_test(another_run_is_another_line),
        cmocka_unit_test(a_finished_run_does_not_go_on_elsewhere),
        cmocka_unit_test(one_server_goes_on),
        cmocka_unit_test(latest_rules),
        cmocka_unit_test(readers_of_a_running_job),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, job_text, job_cleanup);
}
