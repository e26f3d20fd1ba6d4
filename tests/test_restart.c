// test_restart.c - a job that fails starts again. It ends with the same files
// as a job that did not fail.

#include "base/base.h"
#include "tests/job_asserts.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>

enum { MAX = 200 };

static const char tiny[] =
    "data=text.txt model=nano layers=1 channels=32 heads=2 context=16 batch=2 "
    "dropout=0.1 eval=0 log=0 warmup=0 timeout=30 threads=1 samples=0";

// Every synchronous backend (bsp). Servers over MPI run under mpirun, as one
// job with the workers.
static const char *const ways[] = {
    "ring transport=shm", "sps",         "allreduce", "dps update=worker",
    "ring transport=tcp", "zero",        "dps",       "sps transport=mpi",
    "dps transport=mpi",  "dataparallel"};
enum { WAYS = sizeof ways / sizeof *ways, QUICK = 4 };

// One worker dies at `step`. The job ends with the same files as `calm`, a job
// without a death.
static void kill_at(const char *way, int step, int rank)
{
    struct job j;
    double restarts[MAX], lost[MAX];
    int done = step - 1, saved = done / 10 * 10;
    char from[64];
    job_run(&j, 100,
            "rm -rf ill; lockstep train %s sync=%s workers=2 steps=60 save=10 "
            "restarts=1 inject=kill:%d@%d out=ill",
            tiny, way, step, rank);
    assert_status(&j, 0);
    snprintf(from, sizeof from,
             saved ? "restart 1 of 1 in 1 s, from checkpoint-%d"
                   : "restart 1 of 1 in 1 s, from step %d",
             saved);
    assert_prints(&j, from);
    job_run(&j, 20,
            "for f in model optimizer; do cmp calm/checkpoint-60/$f."
            "safetensors ill/checkpoint-60/$f.safetensors || exit 1; done; "
            "cut -d, -f3,4,7,9 calm/steps.csv > a; "
            "cut -d, -f3,4,7,9 ill/steps.csv | diff a -");
    assert_status(&j, 0);
    for (int r = 0; r < 2; r++) {
        assert_int_equal(job_column("ill", "restarts", r, restarts, MAX), 60);
        assert_int_equal(job_column("ill", "steps_lost", r, lost, MAX), 60);
        for (int i = 0; i < 60; i++) {
            assert_true(restarts[i] == (i >= saved));
            // the other worker may have been a step ahead, or behind
            assert_true(fabs(lost[i] - (i < saved ? 0 : done - saved)) <=
                        (i >= saved));
        }
    }
    assert_true(job_summary("ill", "restarts") == 1);
    assert_true(job_summary("ill", "steps_lost") >= done - saved);
    assert_true(done == saved || job_summary("ill", "seconds_lost") > 0);
    job_run(&j, 20,
            "grep -q '\"name\": \"restarts\"' ill/trace.json && "
            "grep -q '\"inject\":.*\"kill:%d[\"@]' ill/run.json",
            step);
    assert_status(&j, 0);
}

static void a_restarted_job_ends_with_the_same_files(void **state)
{
    (void)state;
    static const int steps[] = {1, 9, 10, 11, 35, 59};
    struct job j;
    int n = test_long() ? WAYS : QUICK;
    for (int w = 0; w < n; w++) {
        job_run(&j, 100,
                "rm -rf calm; lockstep train %s sync=%s workers=2 steps=60 "
                "save=10 out=calm",
                tiny, ways[w]);
        assert_status(&j, 0);
        for (int i = 0; i < 6; i++)
            if (test_long() || i == (w == 0 ? 4 : w == 1 ? 0 : w))
                kill_at(ways[w], steps[i], i % 2);
    }
}

// The message names the last step that was done, not the last one that was
// reported: reports come every 0.2 s.
static void a_death_is_named_by_its_step(void **state)
{
    (void)state;
    struct job j;
    job_run(&j, 60,
            "lockstep train %s steps=60 save=5 restarts=1 inject=kill:17 "
            "out=named; lockstep train resume=named/checkpoint-60 steps=70 "
            "inject=fail:3 restarts=0 out=named",
            tiny);
    assert_prints(&j, "after step 16; restart 1 of 1 in 1 s, from "
                      "checkpoint-15");
    assert_prints(&j, "after step 62: ");
}

// The same error comes after the same step: another restart would not help.
static void a_fault_that_stays_is_not_repeated(void **state)
{
    (void)state;
    struct job j;
    job_run(&j, 60,
            "ulimit -f 300; lockstep train %s steps=60 save=10 restarts=9 "
            "trace=off out=stays",
            tiny);
    assert_status(&j, 1);
    assert_prints(&j, "restart 1 of 9");
    assert_prints(&j, "File too large");
    assert_prints(&j, "not restarted: it failed after step 10 before, so it "
                      "would fail again");
    assert_null(strstr(j.out, "restart 2 of 9"));
}

// Deaths after different steps are accidents, so the job starts again after
// each. The second death comes two checkpoints after the first restart. The
// folder's name has brackets, which must not matter.
static void another_step_is_another_fault(void **state)
{
    (void)state;
    struct job j;
    job_run(&j, 100,
            "lockstep train %s steps=1000000 save=5 restarts=2 'out=g[1]' & "
            "p=$!; old=; "
            "newer() { until [ -e 'g[1]/latest' ] && "
            "[ \"$(cat 'g[1]/latest')\" != \"$old\" ]; do sleep 0.02; done; "
            "old=$(cat 'g[1]/latest'); }; "
            "end() { newer; newer; read v < /proc/$p/task/$p/children; "
            "kill -9 $v; until grep -q \"restart $1 of\" 'g[1]/log.txt'; do "
            "kill -0 $p || return; sleep 0.02; done; old=$(cat 'g[1]/latest'); "
            "}; end 1; end 2; kill $p; wait $p",
            tiny);
    assert_prints(&j, "restart 1 of 2 in 1 s, from checkpoint-");
    assert_prints(&j, "restart 2 of 2 in 2 s, from checkpoint-");
    assert_int_equal(job_processes(20), 0);
}

// A job starts again as often as restarts= allows; the next failure ends it.
// The death of a server counts like that of a worker. Both die just after a
// checkpoint.
static void restarts_are_counted(void **state)
{
    (void)state;
    struct job j;
    job_run(&j, 100,
            "lockstep train %s sync=sps workers=2 steps=1000000 save=5 "
            "restarts=1 out=counted & p=$!; "
            "end() { v=$(grep -ls \"($1) . $p \" /proc/[0-9]*/stat | "
            "tail -n 1 | cut -d / -f 3); kill -9 $v; }; "
            "newer() { until [ -e counted/latest ] && "
            "[ \"$(cat counted/latest)\" != \"$old\" ]; do sleep 0.02; "
            "done; }; old=; newer; end ps_server; "
            "until grep -q 'restart 1 of' counted/log.txt; do sleep 0.02; "
            "done; old=$(cat counted/latest); newer; end trainer; wait $p",
            tiny);
    assert_status(&j, 1);
    assert_prints(&j, "server 0: killed by signal 9");
    assert_prints(&j, "restart 1 of 1 in 1 s, from checkpoint-");
    assert_prints(&j, "killed by signal 9 (SIGKILL, Killed) after step");
    assert_null(strstr(j.out, "; try: "));
    assert_int_equal(job_processes(20), 0);
}

// Who asked for no restart is told of it.
static void a_lost_job_says_what_helps(void **state)
{
    (void)state;
    static const char *const says[] = {
        "try: save=100 restarts=3, to go on after a loss; log: lost/log.txt",
        "try: resume=auto, or restarts=3 from the start on; log: "};
    struct job j;
    for (int saves = 0; saves < 2; saves++) {
        job_run(&j, 60,
                "rm -rf lost; lockstep train %s steps=9 save=%d inject=kill:5 "
                "out=lost",
                tiny, 3 * saves);
        assert_status(&j, 1);
        assert_prints(&j, says[saves]);
    }
}

// In an elastic job only the dead worker starts again: the servers keep the
// parameters. It was alone, so it does the step in which it died.
static void a_worker_is_started_again_alone(void **state)
{
    (void)state;
    static const char *const elastic[] = {"sps", "dps servers=2"};
    struct job j;
    double step[MAX], restarts[MAX], lost[MAX];
    for (int w = 0; w < 2; w++) {
        job_run(&j, 60,
                "rm -rf alone; lockstep train %s sync=%s workers=1 elastic=1 "
                "steps=40 save=10 restarts=1 inject=kill:25 out=alone && "
                "grep -q '\"name\": \"restarts\"' alone/trace.json",
                tiny, elastic[w]);
        assert_status(&j, 0);
        assert_prints(&j, "the other workers go on; restart 1 of 1, of rank 0 "
                          "alone, in 1 s");
        assert_prints(&j, "joins a running job after its step 24");
        assert_int_equal(job_column("alone", "step", 0, step, MAX), 40);
        job_column("alone", "restarts", 0, restarts, MAX);
        job_column("alone", "steps_lost", 0, lost, MAX);
        for (int i = 0; i < 40; i++) {
            assert_true(step[i] == i + 1);
            assert_true(restarts[i] == (i >= 24) && lost[i] == 0);
        }
        assert_true(job_summary("alone", "restarts") == 1);
        assert_true(job_summary("alone", "steps_lost") == 0);
    }
}

// Either worker may die. The rows of the other one stay, and count no restart.
// The rows of the worker that died count the steps that it missed.
static void the_other_workers_go_on(void **state)
{
    (void)state;
    static double at[1000000];
    struct job j;
    for (int rank = 0; rank < 2; rank++) {
        job_run(&j, 60,
                "rm -rf on; lockstep train %s sync=sps workers=2 elastic=1 "
                "steps=1000000 save=100 restarts=1 inject=kill:25@%d "
                "trace=off out=on & p=$!; "
                "until [ \"$(tail -n 1 on/steps.%d.csv 2>&1 | cut -d, -f24)\" "
                "= 1 ]; do sleep 0.02; done; " // restarts
                "kill $p; wait $p",
                tiny, rank, rank);
        assert_status(&j, 128 + SIGTERM);
        int n = job_column("on", "restarts", rank, at, 1000000);
        assert_true(n > 24 && at[23] == 0 && at[24] == 1 && at[n - 1] == 1);
        assert_int_equal(job_column("on", "step", rank, at, 1000000), n);
        double missed = at[24] - 25;
        job_column("on", "steps_lost", rank, at, 1000000);
        assert_true(at[23] == 0 && at[24] == missed && at[n - 1] == missed);
        n = job_column("on", "restarts", !rank, at, 1000000);
        for (int i = 0; i < n; i++)
            assert_true(at[i] == 0);
    }
    assert_int_equal(job_processes(20), 0);
}

// A scheduler starts the command of a cancelled job again. Each such start
// counts as a restart. A run that ended and goes on was not restarted.
static void a_command_that_is_started_again_is_a_restart(void **state)
{
    (void)state;
    static const int dies[] = {4, 13, 17, 0}; // counted in each start
    struct job j;
    double at[MAX], lost[MAX];
    char fault[32] = "";
    for (size_t i = 0; i < sizeof dies / sizeof *dies; i++) {
        if (dies[i])
            snprintf(fault, sizeof fault, "inject=kill:%d", dies[i]);
        job_run(&j, 60,
                "lockstep train %s sync=sps workers=2 steps=30 save=10 "
                "resume=auto %s out=queue",
                tiny, dies[i] ? fault : "");
        assert_status(&j, dies[i] > 0);
    }
    assert_true(job_summary("queue", "restarts") == 3);
    assert_int_equal(job_column("queue", "restarts", 1, at, MAX), 30);
    assert_int_equal(job_column("queue", "steps_lost", 0, lost, MAX), 30);
    for (int i = 0; i < 30; i++)
        assert_true(at[i] == 1 + (i >= 10) + (i >= 20));
    assert_true(lost[0] == 3);
    job_run(&j, 60, "lockstep train resume=auto steps=40 out=queue");
    assert_status(&j, 0);
    assert_true(job_summary("queue", "restarts") == 3);
}

// A script in place of ssh dies instead of starting a process: at its first
// call, before the job's first step; or at its third, while the job restarts,
// before it has made a step again. These losses are like any other.
static void a_start_may_fail(void **state)
{
    (void)state;
    struct job j;
    for (int call = 1; call <= 3; call += 2) {
        job_run(&j, 90,
                "rm -rf lost n; printf '127.0.0.2\n' > far; printf "
                "'#!/bin/sh\\necho >> n\\n[ $(wc -l < n) = %d ] && kill -9 "
                "$$\\nshift\\nexec sh -c \"$*\"\\n' > rsh; chmod +x rsh; "
                "LOCKSTEP_RSH=$PWD/rsh lockstep train %s sync=ring workers=2 "
                "hosts=far steps=30 save=10 restarts=2 %s out=lost",
                call, tiny, call == 3 ? "inject=kill:25" : "");
        assert_status(&j, 0);
        assert_prints(&j, call == 1 ? "rank 0: killed by signal 9 (SIGKILL, "
                                      "Killed); restart 1 of 2 in 1 s, from "
                                      "step 0: there is no checkpoint yet"
                                    : "rank 0: killed by signal 9 (SIGKILL, "
                                      "Killed); restart 2 of 2 in 2 s, from "
                                      "checkpoint-20");
        assert_true(job_has("lost/checkpoint-30"));
    }
}

// A signal during the start ends the job: it is no loss.
static void a_start_may_be_stopped(void **state)
{
    (void)state;
    struct job j;
    job_run(&j, 60,
            "printf '127.0.0.2\n' > far; printf '#!/bin/sh\\ntouch asked; "
            "exec sleep 100\\n' > rsh; chmod +x rsh; LOCKSTEP_RSH=$PWD/rsh "
            "lockstep train %s sync=ring workers=2 hosts=far steps=30 save=10 "
            "restarts=2 out=stopped & p=$!; "
            "until [ -e asked ]; do sleep 0.02; done; kill -TERM $p; wait $p",
            tiny);
    assert_status(&j, 128 + SIGTERM);
    assert_null(strstr(j.out, "restart 1"));
    assert_int_equal(job_processes(20), 0);
}

static void restarts_need_checkpoints(void **state)
{
    (void)state;
    struct job j;
    job_run(&j, 60, "lockstep train %s steps=3 restarts=2 out=none", tiny);
    assert_status(&j, 1);
    assert_prints(&j, "restarts=2 without save= would do every step again");
    assert_prints(&j, "try: save=");
    assert_false(job_has("none"));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_restarted_job_ends_with_the_same_files),
        cmocka_unit_test(a_death_is_named_by_its_step),
        cmocka_unit_test(a_fault_that_stays_is_not_repeated),
        cmocka_unit_test(another_step_is_another_fault),
        cmocka_unit_test(restarts_are_counted),
        cmocka_unit_test(a_lost_job_says_what_helps),
        cmocka_unit_test(a_worker_is_started_again_alone),
        cmocka_unit_test(the_other_workers_go_on),
        cmocka_unit_test(a_command_that_is_started_again_is_a_restart),
        cmocka_unit_test(a_start_may_fail),
        cmocka_unit_test(a_start_may_be_stopped),
        cmocka_unit_test(restarts_need_checkpoints),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, job_text, job_cleanup);
}
