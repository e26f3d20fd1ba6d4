// test_elastic_jobs.c - whole jobs with elastic=1: workers die and come back.

#include "base/base.h"
#include "tests/job_asserts.h"

enum { MAX = 200 };

static const char tiny[] =
    "data=text.txt model=nano layers=1 channels=32 heads=2 context=16 batch=2 "
    "dropout=0.1 log=0 warmup=0 timeout=30 threads=1 samples=0 trace=off "
    "schedule=constant";

// A worker that comes back in a resumed run goes on at the step of the run, not
// of this start, with its place in the data. The checkpoint from which the run
// was resumed is gone by then. With one worker, no step is lost: the run ends
// with the files of one in which nobody died.
static void resumed_runs_go_on_at_the_right_step(void **state)
{
    (void)state;
    static const char *const ways[] = {"sps", "dps servers=2",
                                       "sps consistency=ssp:1",
                                       "sps consistency=asp"};
    struct job j;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        job_run(&j, 90,
                "rm -rf calm ill; t='lockstep train %s sync=%s workers=1 "
                "eval=0 save=5 keep=1 elastic=1'; "
                "$t steps=20 out=calm && $t steps=20 out=ill && "
                "$t steps=50 resume=auto out=calm && "
                "$t steps=50 resume=auto restarts=1 inject=kill:10 out=ill && "
                "cut -d, -f4,5,7,8 calm/steps.csv > a && "
                "cut -d, -f4,5,7,8 ill/steps.csv | diff a -",
                tiny, ways[i]);
        assert_ok(&j);
        assert_prints(&j, "joins a running job after its step 29");
        assert_same_files("calm", "ill", 50);
        job_run(&j, 20,
                "for r in calm ill; do grep -v hash "
                "$r/checkpoint-50/state.json > $r.json; done; "
                "cmp calm.json ill.json");
        assert_ok(&j);
    }
}

// A worker has done the last step and still evaluates when the other one comes
// back. There is nothing left to do, so it ends. One of the two saves.
static void nothing_is_left_after_the_last_step(void **state)
{
    (void)state;
    struct job j;
    for (int back = 0; back < 2; back++) {
        job_run(&j, 90,
                "rm -rf late e.txt; for i in $(seq 40); do "
                "cat text.txt; done > big.txt; timeout 80 ps_server "
                "bind=tcp://127.0.0.1:0 timeout=30 > e.txt 2> said.txt & "
                "until grep -q @endpoint e.txt; do sleep 0.02; done; "
                "w='%s steps=20 sync=sps world=2 elastic=1 eval=20 save=20 "
                "eval_batches=80000 data=big.txt val_fraction=0.9 out=late'; "
                "w=\"$w servers=$(sed -n 's/@endpoint //p' "
                "e.txt)\"; back=%d; other=%d; "
                "trainer $w rank=$other & a=$!; "
                "trainer $w rank=$back inject=kill:10@$back; "
                "until [ \"$(wc -l < late/steps.$other.csv)\" = 20 ]; do "
                "kill -0 $a || exit 1; sleep 0.02; done; "
                "sleep 0.2; kill -STOP $a; "
                "trainer $w rank=$back & b=$!; "
                "until grep -q \"rank $back joins from step\" said.txt; do "
                "sleep 0.02; done; kill -CONT $a; "
                "wait $a; ra=$?; wait $b; rb=$?; wait; echo ended $ra $rb",
                tiny, back, !back);
        assert_prints(&j, "joins a running job after its step 20\n");
        assert_prints(&j, "ended 0 0");
        assert_true(job_has("late/checkpoint-20"));
    }
}

// Worker 1 comes back while worker 0 is in its last steps, and sends its first
// gradient after worker 0's last one. Worker 0 waits for it, and for its rows.
static void who_came_back_is_waited_for(void **state)
{
    (void)state;
    struct job j;
    job_run(&j, 90,
            "rm -rf rows e.txt; timeout 80 ps_server bind=tcp://127.0.0.1:0 "
            "timeout=30 > e.txt 2> said.txt & "
            "until grep -q @endpoint e.txt; do sleep 0.02; done; "
            "w='%s steps=20 sync=sps consistency=asp overlap=0 world=2 "
            "elastic=1 eval=0 save=5 out=rows'; "
            "w=\"$w servers=$(sed -n 's/@endpoint //p' e.txt)\"; "
            "trainer $w rank=0 inject=delay:10:4000@0 & a=$!; "
            "trainer $w rank=1 inject=kill:5@1; "
            "until [ \"$(wc -l < rows/steps.0.csv)\" = 10 ]; do "
            "kill -0 $a || exit 1; sleep 0.02; done; kill -STOP $a; "
            "trainer $w rank=1 inject=delay:1:6000@1 & b=$!; "
            "until grep -q 'rank 1 joins at clock 9' said.txt; do "
            "kill -0 $b || exit 1; sleep 0.02; done; "
            "kill -CONT $a; wait $a; ra=$?; wait $b; rb=$?; wait; "
            "echo ended $ra $rb; "
            "echo $(grep -c ^rows,sps,1, rows/steps.csv) rows",
            tiny);
    assert_prints(&j, "ended 0 0");
    assert_prints(&j, "15 rows"); // steps 1 .. 4 and 10 .. 20
    // the gradients of both that worker 1 knows of when it ends
    assert_true(job_summary("rows", "tokens") == 32 * (20 + 15));
}

// Worker 1 comes back while worker 0, after the last exchange, writes what the
// run leaves. It has nothing to do but to write this once more, with its own.
static void who_comes_last_writes_the_results(void **state)
{
    (void)state;
    struct job j;
    job_run(&j, 90,
            "rm -rf last e.txt; cp '" SLOW_DISK
            "' slow.so; timeout 80 ps_server bind=tcp://127.0.0.1:0 "
            "timeout=30 > e.txt 2> said.txt & "
            "until grep -q @endpoint e.txt; do sleep 0.02; done; "
            "w='%s steps=20 sync=sps consistency=asp world=2 elastic=1 eval=0 "
            "save=5 out=last'; "
            "w=\"$w servers=$(sed -n 's/@endpoint //p' e.txt)\"; "
            "LD_PRELOAD=./slow.so SLOW_DISK_FILE=summary.json "
            "ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0 "
            "SLOW_DISK_S=4 trainer $w rank=0 & a=$!; "
            "trainer $w rank=1 inject=kill:5@1; "
            "until [ -f last/steps.csv ]; do "
            "kill -0 $a || exit 1; sleep 0.02; done; kill -STOP $a; "
            "LOCKSTEP_RESTARTS=1 trainer $w rank=1 & b=$!; "
            "until grep -q 'rank 1 joins at clock 20' said.txt; do "
            "kill -0 $b || exit 1; sleep 0.02; done; kill -CONT $a; "
            "wait $a; ra=$?; wait $b; rb=$?; wait; "
            "echo ended $ra $rb; lockstep verify last",
            tiny);
    assert_prints(&j, "joins a running job after its step 20\n");
    assert_prints(&j, "ended 0 0");
    assert_ok(&j);
}

// Worker 0 came back, trains to the end and saves. The other one waits for it,
// and does not write the same folder.
static void who_came_back_saves_alone(void **state)
{
    (void)state;
    struct job j;
    job_run(&j, 60,
            "rm -rf two; lockstep train %s sync=sps workers=2 elastic=1 "
            "restarts=1 inject=kill:15@0 layers=4 channels=64 steps=800 "
            "save=800 out=two",
            tiny);
    assert_status(&j, 0);
    assert_prints(&j, "joins a running job after its step ");
    assert_lacks(&j, "cannot write");
    assert_true(job_has("two/checkpoint-800"));
}

// Worker 0 comes back while worker 1 saves slowly, goes on and saves a later
// step. It leaves worker 1's unfinished folder alone. Who starts it again by
// hand need not say so: its rows count the steps that it missed.
static void workers_take_turns_to_save(void **state)
{
    (void)state;
    struct job j;
    job_run(&j, 90,
            "rm -rf turns e.txt; cp '" SLOW_DISK
            "' slow.so; timeout 80 ps_server bind=tcp://127.0.0.1:0 "
            "timeout=30 > e.txt & "
            "until grep -q @endpoint e.txt; do sleep 0.02; done; "
            "w='%s steps=40 sync=sps consistency=asp world=2 elastic=1 eval=0 "
            "save=20 out=turns'; "
            "w=\"$w servers=$(sed -n 's/@endpoint //p' e.txt)\"; "
            "LD_PRELOAD=./slow.so SLOW_DISK_S=4 "
            "ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0 "
            "trainer $w rank=1 inject=delay:10:2000@1 & a=$!; "
            "trainer $w rank=0 inject=kill:5@0; "
            "until [ -d turns/.next-20 ]; do "
            "kill -0 $a || exit 1; sleep 0.02; done; kill -STOP $a; "
            "trainer $w rank=0 & b=$!; "
            "until [ \"$(grep -c ,0,40, turns/steps.0.csv)\" = 1 ]; do "
            "kill -0 $b || exit 1; sleep 0.02; done; sleep 1; kill -CONT $a; "
            "wait $a; ra=$?; wait $b; rb=$?; wait; "
            "echo ended $ra $rb; lockstep verify turns",
            tiny);
    assert_prints(&j, "joins a running job after its step 20\n");
    assert_prints(&j, "ended 0 0");
    assert_ok(&j);
    assert_true(job_has("turns/checkpoint-20"));
}

// Worker 0 dies before it has moved aside what is not in the past of the run.
// Worker 1, which goes on alone, does it.
static void worker_0_may_die_while_it_rewinds(void **state)
{
    (void)state;
    struct job j;
    job_run(&j, 90,
            "rm -rf past e.txt renaming; lockstep train %s sync=sps workers=2 "
            "steps=12 elastic=1 eval=0 save=4 keep=9 out=past && cp '" SLOW_DISK
            "' slow.so; timeout 80 ps_server bind=tcp://127.0.0.1:0 "
            "timeout=30 > e.txt & "
            "until grep -q @endpoint e.txt; do sleep 0.02; done; "
            "w='%s steps=10 sync=sps world=2 elastic=1 eval=0 save=5 keep=9 "
            "resume=past/checkpoint-4 out=past'; "
            "w=\"$w servers=$(sed -n 's/@endpoint //p' e.txt)\"; "
            "trainer $w rank=1 & b=$!; "
            "LD_PRELOAD=./slow.so SLOW_DISK_S=60 SLOW_RENAME=.aside "
            "ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0 "
            "trainer $w rank=0 & a=$!; until [ -e renaming ]; do "
            "kill -0 $a || exit 1; sleep 0.02; done; kill -KILL $a; "
            "wait $b; echo ended $?; wait; cd past; "
            "echo checkpoint-* $(cat latest)",
            tiny, tiny);
    assert_prints(&j, "ended 0\n");
    assert_prints(&j, "checkpoint-10 checkpoint-12.aside-1 checkpoint-4 "
                      "checkpoint-5 checkpoint-8.aside-1 checkpoint-10\n");
}

// Worker 0 dies while it still looks for the checkpoint with which the run goes
// on. The other one waits until it is back, since nobody else can say so.
static void worker_0_may_die_before_it_says_where_the_run_begins(void **state)
{
    (void)state;
    struct job j;
    job_run(&j, 90,
            "rm -rf where e.txt holding; lockstep train %s sync=sps workers=2 "
            "steps=4 elastic=1 eval=0 save=4 out=where && cp '" SLOW_DISK
            "' slow.so; timeout 80 ps_server bind=tcp://127.0.0.1:0 elastic=1 "
            "timeout=30 > e.txt 2> said.txt & "
            "until grep -q @endpoint e.txt; do sleep 0.02; done; "
            "w='%s steps=8 sync=sps world=2 elastic=1 eval=0 save=4 "
            "resume=auto out=where'; "
            "w=\"$w servers=$(sed -n 's/@endpoint //p' e.txt)\"; "
            "trainer $w rank=1 & b=$!; "
            "LD_PRELOAD=./slow.so SLOW_DISK_S=60 SLOW_FLOCK=1 "
            "ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0 "
            "trainer $w rank=0 & a=$!; until [ -e holding ]; do "
            "kill -0 $a || exit 1; sleep 0.02; done; kill -KILL $a; "
            "until grep -q 'rank 0 is gone' said.txt; do "
            "kill -0 $b || exit 1; sleep 0.02; done; trainer $w rank=0 & a=$!; "
            "wait $a; ra=$?; wait $b; rb=$?; wait; echo ended $ra $rb",
            tiny, tiny);
    assert_prints(&j, "ended 0 0\n");
    assert_true(job_has("where/checkpoint-8"));
}

// No worker can save, so one after the other ends. The job says why.
static void the_cause_of_a_loss_is_named(void **state)
{
    (void)state;
    struct job j;
    job_run(&j, 60,
            "rm -rf limited; ulimit -f 200; lockstep train %s sync=sps "
            "workers=2 elastic=1 optimizer=sgd momentum=0 channels=64 steps=9 "
            "save=3 out=limited",
            tiny);
    assert_status(&j, 1);
    assert_prints(&j, "no worker reached the end of the run; rank ");
    assert_prints(&j, "File too large");
}

// A worker freezes in a round. The others have sent as many slices as credits
// allow, and wait for it too. Only the frozen one is lost.
static void who_waits_for_a_frozen_worker_is_not_lost(void **state)
{
    (void)state;
    struct job j;
    job_run(&j, 90,
            "rm -rf ice e.txt; timeout 80 ps_server bind=tcp://127.0.0.1:0 "
            "timeout=30 > e.txt 2> said.txt & "
            "until grep -q @endpoint e.txt; do sleep 0.02; done; "
            "w='%s channels=64 steps=60 sync=sps world=3 elastic=1 eval=0 "
            "slice_kb=1 timeout=4 out=ice'; "
            "w=\"$w servers=$(sed -n 's/@endpoint //p' e.txt)\"; "
            "trainer $w rank=0 & a=$!; trainer $w rank=1 & b=$!; "
            "trainer $w rank=2 & c=$!; "
            "until [ \"$(wc -l < ice/steps.0.csv)\" -ge 5 ]; do "
            "kill -0 $a || exit 1; sleep 0.02; done; "
            "kill -STOP $a; wait $b; rb=$?; wait $c; rc=$?; kill -CONT $a; "
            "wait $a; wait; cat said.txt; echo ended $rb $rc",
            tiny);
    assert_prints(&j, "worker rank 0 is gone (it sent nothing");
    assert_prints(&j, "ended 0 0");
}

// Tokens are those of gradients that entered an update: not those of a worker
// that is dead, late, has stopped, or of a step that was skipped. A gradient
// has 2 * 16 tokens.
static void tokens_count_what_was_trained_on(void **state)
{
    (void)state;
    static const struct {
        const char *words;
        int gradients;
    } runs[] = {
        {"sync=sps workers=2 elastic=1 inject=kill:10@1", 29},
        {"sync=dps workers=3 backup=1", 40},
        {"sync=sps workers=2 consistency=asp mistake=own_steps:1:4", 24},
        {"sync=sps workers=2 consistency=ssp:1", 40},
        {"sync=ring workers=2 accum=3", 120},
        {"sync=outer workers=2 every=4", 40},
        {"sync=local precision=fp16 loss_scale=64 inject=inf:3", 19},
        {"sync=sps workers=2 update=worker precision=fp16 loss_scale=64 "
         "inject=inf:3",
         38},
        {"sync=ring mesh=dp2,pp2 layers=2 accum=2", 80},
    };
    struct job j;
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        job_run(&j, 60, "lockstep train %s steps=20 eval=0 %s out=tokens%zu",
                tiny, runs[i].words, i);
        assert_ok(&j);
        char out[32];
        snprintf(out, sizeof out, "tokens%zu", i);
        double tokens = job_summary(out, "tokens");
        if (tokens != 32 * runs[i].gradients)
            print_error("%s: %g tokens\n", runs[i].words, tokens);
        assert_true(tokens == 32 * runs[i].gradients);
    }
}

// A part of the run with larger batches counts them as they are.
static void tokens_of_parts_add_up(void **state)
{
    (void)state;
    struct job j;
    job_run(&j, 60,
            "lockstep train %s sync=local eval=0 save=10 steps=10 out=parts && "
            "lockstep train %s sync=local eval=0 save=10 steps=20 batch=4 "
            "resume=auto out=parts",
            tiny, tiny);
    assert_ok(&j);
    assert_true(job_summary("parts", "tokens") == 32 * (10 + 2 * 10));
}

// Worker 0 ends before the first step, since it cannot write its records. The
// others know neither its clock nor where it began, and go on.
static void worker_0_may_end_before_the_first_step(void **state)
{
    (void)state;
    struct job j;
    double step[MAX];
    job_run(&j, 60,
            "rm -f e.txt; timeout 50 ps_server bind=tcp://127.0.0.1:0 "
            "timeout=30 > e.txt & "
            "until grep -q @endpoint e.txt; do sleep 0.02; done; "
            "w='%s steps=20 eval=0 sync=sps world=2 elastic=1'; "
            "w=\"$w servers=$(sed -n 's/@endpoint //p' e.txt)\"; "
            "trainer $w rank=0 out=/dev/null/none & a=$!; "
            "trainer $w rank=1 out=first; rb=$?; wait $a; ra=$?; wait; "
            "echo ended $ra $rb",
            tiny);
    assert_prints(&j, "out=/dev/null/none: cannot be created");
    assert_prints(&j, "ended 1 0");
    job_run(&j, 10, "mv first/steps.1.csv first/steps.csv");
    assert_int_equal(job_column("first", "step", 1, step, MAX), 20);
}

// Any worker can save. Worker 0, or all but the last one, die: before the first
// save, between two, at the last step before its save, or in that save. The
// others go on, save the last step, and write what a run leaves.
static void any_worker_saves(void **state)
{
    (void)state;
    static const char *const ways[] = {
        "dps servers=2 inject=kill:5@0",
        "sps inject=kill:30@0",
        "dps servers=2 inject=kill:60@0",
        "sps consistency=ssp:2 inject=kill:30@0",
        "sps consistency=asp inject=kill:60@0",
        "dps servers=2 save_async=1 inject=kill:30@0",
    };
    struct job j;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        job_run(&j, 60,
                "rm -rf saved; lockstep train %s workers=3 elastic=1 eval=0 "
                "save=20 steps=60 out=saved sync=%s && "
                "echo `cat saved/latest` && lockstep verify saved",
                tiny, ways[i]);
        assert_ok(&j);
        assert_prints(&j, "; the other workers go on");
        assert_prints(&j, "checkpoint-60\n");
        assert_true(job_has("saved/checkpoint-40"));
        assert_true(job_summary("saved", "steps") == 60);
        assert_true(job_summary("saved", "peak_memory_bytes") > 1e6);
        job_run(&j, 60,
                "lockstep train resume=saved steps=64 out=more; s=$?; "
                "rm -rf more; exit $s");
        assert_ok(&j);
    }
}

// The servers have the parameters, so a worker that starts again needs no
// checkpoint.
static void a_worker_starts_again_without_checkpoints(void **state)
{
    (void)state;
    struct job j;
    job_run(&j, 60,
            "lockstep train %s sync=dps workers=2 elastic=1 eval=0 steps=40 "
            "inject=kill:10@1 restarts=1 out=unsaved",
            tiny);
    assert_status(&j, 0);
    assert_prints(&j, "restart 1 of 1, of rank 1 alone");
    assert_true(job_summary("unsaved", "steps") == 40);
}

// A worker that dies before any worker has pushed comes back to a job that has
// not begun. Its folder holds its own run.
static void worker_0_may_die_before_the_first_push(void **state)
{
    (void)state;
    struct job j;
    job_run(&j, 60,
            "lockstep train %s sync=sps workers=1 elastic=1 eval=0 steps=4 "
            "overlap=0 save=2 inject=kill:1@0 restarts=1 out=early",
            tiny);
    assert_status(&j, 0);
    assert_prints(&j, "restart 1 of 1, of rank 0 alone");
    assert_true(job_summary("early", "steps") == 4);
}

// Under asp the first worker may end long before the last, and waits for it. It
// is no loss, and nothing is printed of it.
static void the_first_to_end_waits_for_the_last(void **state)
{
    (void)state;
    struct job j;
    job_run(&j, 150,
            "lockstep train %s sync=dps workers=3 servers=2 elastic=1 eval=0 "
            "consistency=asp steps=1500 straggler=1:8 restarts=1 timeout=4 "
            "out=uneven",
            tiny);
    assert_status(&j, 0);
    assert_lacks(&j, "rank");
    assert_lacks(&j, "server");
    job_run(&j, 10, "wc -l <uneven/steps.csv; cat uneven/log.txt");
    assert_prints(&j, "4501\n");
    assert_lacks(&j, "did not come");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resumed_runs_go_on_at_the_right_step),
        cmocka_unit_test(who_came_back_is_waited_for),
        cmocka_unit_test(who_comes_last_writes_the_results),
        cmocka_unit_test(nothing_is_left_after_the_last_step),
        cmocka_unit_test(who_came_back_saves_alone),
        cmocka_unit_test(workers_take_turns_to_save),
        cmocka_unit_test(worker_0_may_die_while_it_rewinds),
        cmocka_unit_test(worker_0_may_die_before_it_says_where_the_run_begins),
        cmocka_unit_test(the_cause_of_a_loss_is_named),
        cmocka_unit_test(worker_0_may_end_before_the_first_step),
        cmocka_unit_test(any_worker_saves),
        cmocka_unit_test(a_worker_starts_again_without_checkpoints),
        cmocka_unit_test(worker_0_may_die_before_the_first_push),
        cmocka_unit_test(who_waits_for_a_frozen_worker_is_not_lost),
        cmocka_unit_test(the_first_to_end_waits_for_the_last),
        cmocka_unit_test(tokens_count_what_was_trained_on),
        cmocka_unit_test(tokens_of_parts_add_up),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, job_text, job_cleanup);
}
