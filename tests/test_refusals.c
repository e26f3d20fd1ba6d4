// test_refusals.c - runs that are refused or stopped print one line that says
// why, and leave nothing half done.

#include "tests/job_asserts.h"

static const char tiny[] =
    "data=text.txt model=nano layers=1 channels=32 heads=2 context=16 batch=4 "
    "threads=1 warmup=3 eval=0";

// A wrong setting is refused with one line that names it. No folder is left.
static void wrong_settings_are_refused(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"stpes=3", "steps"},
        {"steps=0", "1 .. "},
        {"steps=1e30", "1e30"},
        {"lr=fast", "fast"},
        {"model=nanoo", "nanoo"},
        {"data=/no/such/file", "/no/such/file"},
        {"precision=fp8", "fp8"},
        {"workers=2", "sync=ring"},
        {"resume=auto out=", "out=DIR"},
        {"heads=3", "heads=3"},
        {"wire=fp16", "local has no such setting; try: leave it out, or an"},
        {"min_lr=1", "min_lr=1"},
        {"/no/such.ini", "/no/such.ini"},
        {".", ".: a folder; try: ./run.json"},
        {"sync=ring workers=2 init=/no/such", "/no/such: No such file"},
        {"sync=dps workers=2 init=/no/such", "/no/such: No such file"},
        {"resume=/no/such", "try: the folder of a run"},
        {"resume=.", "resume=.: holds no checkpoint"},
        {"epochs=1", "try: one of them"},
        {"init=/no/such", "try: init=random"},
        {"init=/tmp", "a folder; try: init=/tmp/model.safetensors"},
        {"lr=0.01 min_lr=0.1", "try: min_lr=0.0005"},
        {"heads=3 channels=64", "try: channels=66"},
        {"rendezvous=foo", "try: rendezvous=tcp://"},
        {"model=", "model=: empty; try:"},
        {"out=/dev/null", "try: a folder that you may write to"},
        {"sync=ring world=2 rank=2", "try: rank=1"},
        {"sync=sps workers=2 hosts=/no/such", "try: a file of lines NAME"},
        {"sync=ring workers=2 hosts=/no/such", "try: a file of lines NAME"},
        {"net=fast", "want RATE[,hosts=N]"},
        {"net=-1gbit", "want RATE[,hosts=N]"},
        {"STEPS=5", "nearest: steps"},
        {"=5", "=5: no key before it; want key=value"},
        {"sync=ring workers=2 iface=nosuch0", "iface=nosuch0"},
        {"sync=ring workers=2 iface=nosuch0 transport=tcp", "iface=nosuch0"},
        {"sync=sps workers=2 iface=nosuch0", "nosuch0"},
        {"sync=ring workers=2 straggler=9:2",
         "straggler=9:2: there is no rank 9 of 2"},
        {"sync=ring workers=2 inject=fail:1@7",
         "=fail:1@7: there is no rank 7 of 2"},
        {"sync=sps workers=2 elastic=1 backup=1", "backup=1 requires"},
        {"sync=dps workers=2 backup=2", "backup=2 of 2 workers"},
        {"sync=dps workers=2 channels=1024 bucket_mb=0.001",
         "need more than 4096 buckets; try: a larger bucket_mb="},
        {"sync=dps workers=2 servers=0", "servers=0"},
        {"sync=dps workers=2 servers=9999", "1 .. 4096"},
        {"sync=dps workers=2 curve=/no/such", "lockstep keys /no/such"},
        {"sync=ring workers=2 curve=/no/such", "try: leave it out"},
        {"optimizer=lamb sync=dps workers=2", "norms of whole tensors"},
        {"optimizer=lars sync=zero workers=2", "norms of whole tensors"},
        {"optimizer=lamb sync=dataparallel workers=2", "norms of whole"},
        {"optimizer=lars mesh=pp2", "without stages and slices"},
        {"optimizer=lars device=cuda", "no kernel for device=cuda"},
        {"attention=cudnn", "is for GPUs; try: device=cuda"},
        {"device=cuda attention=cudnn", "in 16 bits, precision=fp32; try:"},
        {"device=cuda attention=cudnn precision=bf16 dropout=0.1",
         "try: dropout=0, or attention=ours"},
        {"curve=/no/such", "encrypts messages of servers, and sync=local"},
    };
    struct job j = {0};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        job_run(&j, 60, "lockstep train %s steps=3 out=bad %s", tiny,
                bad[i][0]);
        assert_int_equal(j.status, 1);
        assert_prints(&j, bad[i][1]);
        if (count_lines(j.out) != 1 || job_has("bad")) {
            print_error("%s: %s\n", bad[i][0], j.out);
            assert_true(false);
        }
    }
    job_run(&j, 20, "lockstep sample no/such/run");
    assert_int_equal(j.status, 1);
    assert_prints(&j, "no/such/run");
    job_run(&j, 20, "lockstep sample text.txt tokens=x");
    assert_int_equal(j.status, 1);
    assert_prints(&j, "tokens=x");
}

// A command that is refused leaves an earlier run's folder as it was.
static void a_refused_run_keeps_the_earlier_one(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"sync=ring workers=2", "holds a run; try: another out="},
        {"resume=auto", "left no checkpoint"},
        {"sync=dps workers=2 resume=auto", "left no checkpoint"},
    };
    struct job j = {0};
    job_run(&j, 60, "lockstep train %s steps=3 out=kept && cp -r kept then",
            tiny);
    assert_int_equal(j.status, 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        job_run(&j, 60, "lockstep train %s steps=5 out=kept %s", tiny,
                bad[i][0]);
        assert_int_equal(j.status, 1);
        assert_prints(&j, bad[i][1]);
        assert_int_equal(count_lines(j.out), 1);
        job_run(&j, 20, "diff -r kept then");
        assert_int_equal(j.status, 0);
    }
}

// ... nor does a run that could not be resumed say a step of that run, or go on
// from its checkpoint.
static void a_failed_start_is_none_of_the_earlier_run(void **state)
{
    (void)state;
    struct job j = {0};
    job_run(&j, 60,
            "lockstep train %s steps=3 save=3 out=stands && touch stands/.lock "
            "&& lockstep train %s steps=5 save=3 restarts=1 resume=/no/such "
            "out=stands",
            tiny, tiny);
    assert_int_equal(j.status, 1);
    assert_prints(&j, "resume=/no/such: No such file");
    assert_prints(&j, "restart 1 of 1 in 1 s, from /no/such");
    assert_null(strstr(j.out, "after step 3"));
}

// Two jobs in one folder would write into each other's files. The later one is
// refused, even if the first has not written anything yet.
static void a_folder_takes_one_job_at_a_time(void **state)
{
    (void)state;
    struct job j = {0};
    static const char *const starts[] = {"lockstep train", "trainer"};
    for (int i = 0; i < 2; i++) {
        job_run(&j, 60,
                "rm -rf ours; mkdir ours; flock ours/.lock sh -c 'ls -A ours > "
                "before; %s %s steps=3 out=ours; s=$?; ls -A ours | diff "
                "before - && exit $s'",
                starts[i], tiny);
        assert_int_equal(j.status, 1);
        assert_prints(&j, "out=ours: another job is writing there; try: ");
        assert_int_equal(count_lines(j.out), 1);
        job_run(&j, 60, "%s %s steps=3 out=ours && [ ! -e ours/.lock ]",
                starts[i], tiny);
        assert_int_equal(j.status, 0);
    }
}

// The error's line says what mpirun could not do. The log has all lines of
// mpirun.
static void mpiruns_error_is_printed(void **state)
{
    (void)state;
    struct job j = {0};
    job_run(&j, 60,
            "echo '?' > odd; lockstep train %s steps=3 sync=allreduce "
            "workers=2 hosts=odd out=unheard",
            tiny);
    assert_int_equal(j.status, 1);
    assert_prints(&j, "parse error in the hostfile: ");
    assert_prints(&j, "odd"); // the whole path, with Open MPI 5
    assert_int_equal(count_lines(j.out), 1);
    assert_true(job_has("unheard/log.txt"));
}

// ssh would log in to the hosts of hosts=, so a run that is resumed or repeated
// does not take them from the earlier one.
static void hosts_are_said_again(void **state)
{
    (void)state;
    static const char *const how[] = {"resume=hosted out=other",
                                      "resume=auto out=hosted",
                                      "hosted/run.json out=other"};
    struct job j = {0};
    job_run(&j, 60,
            "echo localhost > hosts; lockstep train %s steps=3 save=3 "
            "sync=ring workers=2 hosts=hosts out=hosted",
            tiny);
    assert_int_equal(j.status, 0);
    for (int i = 0; i < 3; i++) {
        job_run(&j, 60, "lockstep train %s steps=6", how[i]);
        assert_int_equal(j.status, 1);
        assert_prints(&j, "the earlier run had hosts=, and its run.json cannot "
                          "name hosts to log in to; try: hosts=FILE");
        assert_int_equal(count_lines(j.out), 1);
    }
    job_run(&j, 60,
            "lockstep train resume=hosted steps=6 hosts= out=here && "
            "lockstep train resume=auto steps=6 hosts=hosts out=hosted");
    assert_int_equal(j.status, 0);
}

// A limit on the size of files stops the run with a line that names the file.
static void a_file_that_cannot_grow_is_named(void **state)
{
    (void)state;
    struct job j = {0};
    job_run(&j, 60,
            "ulimit -f 300; lockstep train %s steps=9 save=3 out=limited",
            tiny);
    assert_int_equal(j.status, 1);
    assert_prints(&j, "/optimizer.safetensors: File too large");
    // nor does a trainer without a launcher die of it, before its first step
    job_run(&j, 60, "ulimit -f 4; trainer %s steps=3 out=limited", tiny);
    assert_int_equal(j.status, 1);
    assert_prints(&j, "File too large; try: ulimit -f unlimited");
}

// Each command says where it could not write, and what to try.
static void a_place_that_takes_no_files_is_named(void **state)
{
    (void)state;
    static const char *const commands[][2] = {
        {"run e.ini", "out="},
        {"simulate pipeline=all", "out="},
        {"keys", ""},
        {"explain tried", "out="},
        {"report tried", "out="},
        {"train data=text.txt", "out="},
        {"explain ring", "out="}, // last: its memory is limited
    };
    size_t count = sizeof commands / sizeof *commands - TEST_SANITIZED;
    struct job j = {0};
    job_run(&j, 60,
            "printf '[cell a]\\nsync = local\\n' > e.ini; lockstep train %s "
            "steps=2 out=tried",
            tiny);
    assert_status(&j, 0);
    for (size_t i = 0; i < count; i++) {
        job_run(&j, 60, "lockstep %s %s/proc/no/x", commands[i][0],
                commands[i][1]);
        assert_status(&j, 1);
        assert_prints(&j, "/proc/no");
        assert_prints(&j, "; try: a folder that you may write to\n");
        assert_int_equal(count_lines(j.out), 1);
    }
    for (int i = 0; i < 2; i++) {
        job_run(&j, 60, "lockstep %s out=text.txt", commands[i][0]);
        assert_status(&j, 1);
        assert_prints(&j, "text.txt: a file; try: the name of a folder");
    }
    job_run(&j, 60, "ln -s /dev/null null; lockstep explain tried out=null");
    assert_status(&j, 1);
    assert_string_equal(j.out, "lockstep: null: not a regular file; try: the "
                               "name of a file\n");
}

// As other programs do, a command ends by SIGPIPE, without a word, if nobody
// reads its output any more. The pipe has lost its reader before.
static void nobody_reads_any_more(void **state)
{
    (void)state;
    static const char *const commands[] = {
        "lockstep --help",
        "lockstep man trainer",
        "lockstep report --help",
        "lockstep completion bash",
        "lockstep bench sync --help",
        "trainer --help",
        "sh -c 'trap \"\" PIPE; lockstep --help'",
        "lockstep explain ring out=unread.html",
    };
    size_t count = sizeof commands / sizeof *commands - TEST_SANITIZED;
    struct job j = {0};
    for (size_t i = 0; i < count; i++) {
        job_run(&j, 60,
                "rm -f gone; mkfifo gone; exec 3<>gone 4>gone 3<&-; %s >&4; "
                "echo status $?",
                commands[i]);
        assert_string_equal(j.out, "status 141\n");
    }
}

// A small stack is widened if its hard limit allows it, or the limit is named.
static void a_small_stack_is_widened_or_named(void **state)
{
    (void)state;
    struct job j = {0};
    job_run(&j, 60,
            "ulimit -S -s 128; lockstep train %s steps=3 sync=sps workers=2",
            tiny);
    assert_int_equal(j.status, 0);
    job_run(&j, 60,
            "ulimit -s 128; lockstep train %s steps=3 sync=sps workers=2",
            tiny);
    assert_int_equal(j.status, 1);
    assert_prints(&j, "the limit of the stack is 128 KiB, a worker needs 1024");
}

// Without a PATH, as after `env -i`, programs are looked for where sh would.
static void jobs_need_no_path(void **state)
{
    (void)state;
    struct job j = {0};
    job_run(&j, 60,
            "env -u PATH \"$(command -v lockstep)\" train %s steps=3 workers=2 "
            "sync=allreduce",
            tiny);
    assert_int_equal(j.status, 0);
}

// Every gradient is finite, but their sum in the 16 bits of the wire is not.
// The worker that has the sum names the tensor, even if gradients are on a
// device.
static void a_sum_that_overflows_is_named(void **state)
{
    (void)state;
    static const char *const holders[] = {"zero", "ring"};
    struct job j = {0};
    for (int b = 0; b < 2; b++) {
        job_run(&j, 60,
                "rm -rf sum; lockstep train %s steps=30 sync=%s workers=2 "
                "wire=fp16 loss_scale=16777216 staging=always out=sum",
                tiny, holders[b]);
        assert_int_equal(j.status, 1);
        assert_prints(&j, "the gradient of ");
    }
}

// A run's folder may come from a stranger. Nothing is written to, removed from
// or copied from what its links lead to, and nothing waits for its FIFOs.
static void what_links_lead_to_stays(void **state)
{
    (void)state;
    static const char *const names[] = {".lock",          "log.txt",
                                        "util.0.csv",     "breakdown.0.csv",
                                        "steps.csv.next", "util.csv.next",
                                        "run.json.tmp",   "util.5.csv",
                                        ".next-3",        "checkpoint-3"};
    static const char *const make[] = {"ln -s ../kept.txt", "ln -s ../kept",
                                       "mkfifo"};
    struct job j = {0};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (int kind = 0; kind < 3; kind++) {
            job_run(
                &j, 60,
                "rm -rf given kept; mkdir given kept; echo 12 | tee "
                "kept.txt > kept/a; cd given && %s %s && cd .. || exit 9; "
                "timeout 50 lockstep train %s steps=3 save=3 sync=ring "
                "workers=2 out=given; [ $? -le 1 ] && [ `cat kept.txt` = "
                "12 ] && [ `cat kept/*` = 12 ] && ! grep -rx -D skip 12 given",
                make[kind], names[i], tiny);
            if (j.status)
                print_error("%s %s\n", make[kind], names[i]);
            assert_ok(&j);
        }
}

// Worker 0 cannot make the checkpoint's folder. Only this cause is printed.
static void a_folder_that_cannot_be_made_is_named(void **state)
{
    (void)state;
    static const char *const writers[] = {"ring", "zero"};
    struct job j = {0};
    for (int b = 0; b < 2; b++) {
        job_run(&j, 60,
                "rm -rf bad; mkdir bad; touch bad/.next-2; lockstep train %s "
                "steps=2 save=2 sync=%s workers=2 out=bad",
                tiny, writers[b]);
        assert_int_equal(j.status, 1);
        assert_prints(&j, "bad/.next-2: Not a directory");
        assert_null(strstr(j.out, "did not come"));
    }
}

// The server gets the name of the interface, and its workers get the address.
static void servers_listen_at_an_interface(void **state)
{
    (void)state;
    struct job j = {0};
    job_run(&j, 60, "lockstep train %s steps=3 sync=sps workers=2 iface=lo",
            tiny);
    if (j.status)
        print_error("%s\n", j.out);
    assert_int_equal(j.status, 0);
}

static void sigterm_ends_a_job_in_order(void **state)
{
    (void)state;
    static const char *const ways[][2] = {{"sync=local", "steps"},
                                          {"sync=dps workers=2", "steps.1"}};
    struct job j = {0};
    for (int i = 0; i < 2; i++) {
        job_run(&j, 60,
                "rm -rf stopped; lockstep train %s steps=100000 %s out=stopped "
                "& while ! grep -q ,1, stopped/%s.csv; do sleep 0.05; done; "
                "kill -TERM $!; wait $!",
                tiny, ways[i][0], ways[i][1]);
        assert_int_equal(j.status, 128 + 15);
        assert_prints(&j, "stopped by signal 15");
        assert_int_equal(job_processes(20), 0);
        assert_true(job_has("stopped/steps.csv"));
        assert_false(job_has("stopped/steps.1.csv"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_settings_are_refused),
        cmocka_unit_test(a_refused_run_keeps_the_earlier_one),
        cmocka_unit_test(a_failed_start_is_none_of_the_earlier_run),
        cmocka_unit_test(mpiruns_error_is_printed),
        cmocka_unit_test(hosts_are_said_again),
        cmocka_unit_test(a_folder_takes_one_job_at_a_time),
        cmocka_unit_test(a_file_that_cannot_grow_is_named),
        cmocka_unit_test(a_place_that_takes_no_files_is_named),
        cmocka_unit_test(nobody_reads_any_more),
        cmocka_unit_test(a_small_stack_is_widened_or_named),
        cmocka_unit_test(jobs_need_no_path),
        cmocka_unit_test(what_links_lead_to_stays),
        cmocka_unit_test(a_folder_that_cannot_be_made_is_named),
        cmocka_unit_test(a_sum_that_overflows_is_named),
        cmocka_unit_test(servers_listen_at_an_interface),
        cmocka_unit_test(sigterm_ends_a_job_in_order),
    };
    return cmocka_run_group_tests(tests, job_text, job_cleanup);
}
