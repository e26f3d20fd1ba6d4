// test_save.c - checkpoints that are written while steps continue
// (save_async=1): they have the same bytes, and fail with the same errors, as
// with save_async=0.

#include "base/base.h"
#include "tests/job_asserts.h"

static const char tiny[] =
    "data=text.txt model=nano context=16 batch=2 eval=0 log=0 warmup=0 "
    "timeout=30 threads=1 samples=0 trace=off keep=9";

static void the_same_bytes(void **state)
{
    (void)state;
    static const char *const ways[] = {"sync=local optimizer=sgd",
                                       "sync=local",
                                       "sync=ring",
                                       "sync=sps",
                                       "sync=dps update=worker",
                                       "sync=allreduce precision=fp16"};
    struct job j;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        job_run(&j, 100,
                "rm -rf async0 async1; for a in 0 1; do lockstep train %s %s "
                "workers=%d steps=27 save=5 save_async=$a out=async$a || exit; "
                "done; rm -rf async?/[!c]*; diff -r async0 async1 && "
                "ls -A async1 | tr '\\n' ' '",
                tiny, ways[i], i < 2 ? 1 : 2);
        assert_status(&j, 0);
        assert_prints(&j, "checkpoint-10 checkpoint-15 checkpoint-20 "
                          "checkpoint-25 checkpoint-27 checkpoint-5 ");
    }
}

// Worker 0, which saves, is late, and leaves out steps after which it was to
// save. It saves after the one in which it is back.
static void a_late_worker_leaves_no_save_out(void **state)
{
    (void)state;
    enum { STEPS = 400, EVERY = 20 };
    struct job j;
    char name[64];
    double step[STEPS + 1];
    job_run(&j, 90,
            "rm -rf late; lockstep train %s steps=%d sync=sps workers=2 "
            "backup=1 inject=delay:5:100@0 save=%d keep=0 out=late",
            tiny, STEPS, EVERY);
    assert_ok(&j);
    int n = job_column("late", "step", 0, step, STEPS + 1);
    assert_true(n > 5 && step[n - 1] == STEPS);
    for (int i = 1; i < n; i++) {
        snprintf(name, sizeof name, "late/checkpoint-%.0f", step[i]);
        assert_int_equal(job_has(name),
                         (int)step[i] / EVERY > (int)step[i - 1] / EVERY);
    }
}

// The error is that of save_async=0, and no partial file is left.
static void a_full_disk_ends_the_job(void **state)
{
    (void)state;
    struct job j;
    for (int workers = 1; workers < 3; workers++) {
        job_run(&j, 60,
                "rm -rf full; ulimit -f 9000; lockstep train %s sync=%s "
                "workers=%d steps=1000000 save=10 save_async=1 out=full",
                tiny, workers > 1 ? "ring" : "local", workers);
        assert_status(&j, 1);
        assert_prints(&j, "full/.next-10/");
        assert_prints(&j, "File too large");
        assert_false(job_has("full/.next-10"));
        assert_false(job_has("full/checkpoint-10"));
        assert_int_equal(job_processes(20), 0);
    }
}

// save_async=1 writes a copy that worker 0 makes of the state. With shards
// worker 0 does not have the whole state.
static void shards_refuse_save_async(void **state)
{
    (void)state;
    struct job j;
    job_run(&j, 30,
            "lockstep train %s sync=zero workers=2 steps=9 save=3 save_async=1 "
            "out=shards",
            tiny);
    assert_status(&j, 1);
    assert_prints(&j, "other workers hold parts of it; try: "
                      "save_async=0");
    assert_false(job_has("shards"));
}

// On a slow disk a save takes longer than timeout=, and the other workers wait
// for it.
static void a_save_may_take_longer_than_timeout(void **state)
{
    (void)state;
    static const char *const ways[] = {"ring", "dps", "ring save_async=1",
                                       "zero shard=3", "ring mesh=pp2"};
    static const char slow[] =
        "rm -rf slow; cp '" SLOW_DISK "' slow.so; export LD_PRELOAD=./slow.so "
        "ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0; "
        "lockstep train";
    struct job j;
    int n = test_long() ? 5 : 2;
    for (int i = 0; i < n; i++) {
        job_run(&j, 100,
                "%s %s sync=%s workers=2 steps=%d save=2 timeout=4 out=slow",
                slow, tiny, ways[i], i < 2 ? 2 : 6);
        assert_status(&j, 0);
        assert_true(job_has("slow/checkpoint-2/state.json"));
    }
}

// Workers that need not be at the same step do not meet in a save. The others
// may soon wait for the parameters of the one that writes. No job is disturbed.
static void workers_at_their_own_pace_wait_for_a_slow_disk(void **state)
{
    (void)state;
    static const char *const ways[] = {"sps consistency=ssp:1",
                                       "dps consistency=ssp:1 servers=2",
                                       "sps consistency=asp",
                                       "dps elastic=1",
                                       "sps elastic=1",
                                       "dps elastic=1 consistency=ssp:1",
                                       "sps backup=1",
                                       "dps elastic=1 consistency=asp",
                                       "sps backup=1 save_async=1"};
    char list[1024] = "";
    struct job j;
    size_t n = sizeof ways / sizeof *ways;
    for (size_t i = 0; i < n; i++)
        CHECK(!text_into(list + strlen(list), sizeof list - strlen(list),
                         "'%s' ", ways[i]));
    job_run(&j, 150,
            "rm -rf pace?; cp '" SLOW_DISK "' slow.so; "
            "export LD_PRELOAD=./slow.so SLOW_DISK_S=6 "
            "ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0; i=0; "
            "for way in %s; do i=$((i+1)); { lockstep train %s sync=$way "
            "layers=1 channels=32 heads=2 workers=2 steps=4 save=2 restarts=1 "
            "timeout=4 out=pace$i "
            ">pace$i.txt 2>&1; echo \"$way ends with $?\" >>pace$i.txt; } & "
            "[ $((i%%3)) = 0 ] && wait; done; wait; cat pace?.txt",
            list, tiny);
    for (size_t i = 0; i < n; i++) {
        char ends[128], saved[64];
        snprintf(ends, sizeof ends, "%s ends with 0", ways[i]);
        assert_prints(&j, ends);
        snprintf(saved, sizeof saved, "pace%zu/checkpoint-4/state.json", i + 1);
        assert_true(job_has(saved));
    }
    assert_lacks(&j, "is gone");
    assert_lacks(&j, "restart 1");
}

// In an elastic job the workers that save die in the last save, one after the
// other, while the rest waits for them. The last one saves.
static void workers_may_die_in_the_last_save(void **state)
{
    (void)state;
    struct job j;
    job_run(&j, 90,
            "rm -rf dying; cp '" SLOW_DISK "' slow.so; "
            "LD_PRELOAD=./slow.so SLOW_DISK_S=5 "
            "ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0 "
            "lockstep train %s sync=sps workers=3 elastic=1 save=20 steps=20 "
            "out=dying & job=$!; "
            "until [ -s dying/run.json ]; do sleep 0.02; done; "
            "for r in 0 1; do "
            "pid=`sed -n 's/.*\"rank '$r'\".* pid \\([0-9]*\\).*/\\1/p' "
            "dying/run.json`; "
            "until ls -l /proc/$pid/fd | grep next-20/model; do "
            "kill -0 $job || exit 9; sleep 0.02; done; kill -9 $pid; done; "
            "wait $job && lockstep verify dying",
            tiny);
    assert_status(&j, 0);
    assert_true(job_has("dying/checkpoint-20/state.json"));
    assert_true(job_summary("dying", "steps") == 20);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_bytes),
        cmocka_unit_test(a_late_worker_leaves_no_save_out),
        cmocka_unit_test(a_full_disk_ends_the_job),
        cmocka_unit_test(a_save_may_take_longer_than_timeout),
        cmocka_unit_test(workers_at_their_own_pace_wait_for_a_slow_disk),
        cmocka_unit_test(workers_may_die_in_the_last_save),
        cmocka_unit_test(shards_refuse_save_async),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, job_text, job_cleanup);
}
