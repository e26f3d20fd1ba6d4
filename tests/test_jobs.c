// test_jobs.c - whole jobs of several workers. Every backend trains the same
// model, resumes the checkpoints of the others, and fails with one clear line
// and no process left.

#include "base/base.h"
#include "tests/job_asserts.h"

#include <math.h>
#include <stdlib.h>

enum { MAX = 200 };

// The last two change only the transport of sps and dps: some tests leave them
// out.
static const char *const backends[] = {
    "sps",  "dps",          "allreduce",         "ring",
    "zero", "zero shard=3", "sps transport=mpi", "dps transport=mpi"};
enum { BACKENDS = 6, CARRIED = 8 };

// A small model. Buckets and slices are so small that there are several.
static const char same[] =
    "data=text.txt model=nano layers=2 channels=48 heads=3 context=32 eval=0 "
    "log=0 warmup=0 timeout=30 threads=1 bucket_mb=0.05";

// allreduce has no slice_kb=, and a key that a backend does not know is an
// error.
static const char *sliced(const char *sync)
{
    return strcmp(sync, "allreduce") ? "slice_kb=16" : "";
}

// Stores the mean loss of all ranks for each step. Returns the number of steps.
static int mean_loss(const char *run, int world, double *loss)
{
    double one[MAX];
    int n = 0;
    memset(loss, 0, MAX * sizeof *loss);
    for (int r = 0; r < world; r++) {
        n = job_column(run, "loss", r, one, MAX);
        for (int i = 0; i < n; i++)
            loss[i] += one[i] / world;
    }
    return n;
}

static void assert_close(const double *a, const double *b, int n, double within)
{
    for (int i = 0; i < n; i++)
        if (!(fabs(a[i] - b[i]) <= within * fabs(a[i]))) {
            print_message("step %d: %.9g against %.9g\n", i + 1, a[i], b[i]);
            assert_true(false);
        }
}

// n workers with batch b train like one worker with batch n b, with every
// backend. After every step all workers have the same parameters (verify=1).
static void n_workers_train_like_one(void **state)
{
    (void)state;
    struct job j;
    double want[MAX], got[MAX];
    job_run(&j, 100,
            "lockstep train %s optimizer=sgd lr=0.2 steps=20 batch=12 "
            "out=local",
            same);
    assert_ok(&j);
    assert_int_equal(mean_loss("local", 1, want), 20);
    assert_true(want[19] < want[0] - 1);
    for (int world = 1; world <= 4; world++)
        for (int b = 0; b < BACKENDS; b++) {
            char out[32];
            if (!test_long() && (world + b) % 2)
                continue; // every second world of a backend
            snprintf(out, sizeof out, "way%d-%d", b, world);
            job_run(&j, 100,
                    "lockstep train %s optimizer=sgd lr=0.2 steps=20 "
                    "sync=%s workers=%d batch=%d verify=1 %s out=%s",
                    same, backends[b], world, 12 / world, sliced(backends[b]),
                    out);
            assert_ok(&j);
            assert_int_equal(mean_loss(out, world, got), 20);
            print_message("%-12s %d: loss %.6f after 20 steps, local %.6f\n",
                          backends[b], world, got[19], want[19]);
            assert_close(want, got, 20, 1e-4);
        }
}

// AdamW with clipping and a schedule: a second run has the same bits, and a run
// with a 16-bit wire comes close. A sanitizer checks memory, not bits, so under
// it only the last of the three runs is made.
static void reruns_repeat_their_bits(void **state)
{
    (void)state;
    struct job j;
    double first[MAX], again[MAX], narrow[MAX];
    for (int b = 0; b < CARRIED; b++) {
        const char *runs[] = {"x", "y", "z"},
                   *wire[] = {"fp32", "fp32", "bf16"};
        for (int i = TEST_SANITIZED ? 2 : 0; i < 3; i++) {
            job_run(&j, 100,
                    "rm -rf %s; lockstep train %s steps=30 sync=%s workers=3 "
                    "batch=4 accum=2 verify=5 wire=%s out=%s",
                    runs[i], same, backends[b], wire[i], runs[i]);
            assert_ok(&j);
        }
        assert_int_equal(mean_loss("z", 3, narrow), 30);
        if (TEST_SANITIZED)
            continue;
        assert_int_equal(mean_loss("x", 3, first), 30);
        mean_loss("y", 3, again);
        assert_memory_equal(first, again, 30 * sizeof *first);
        assert_close(first, narrow, 30, 0.02);
    }
}

// A run of any backend and world can be resumed with any other.
static void any_backend_resumes_any_other(void **state)
{
    (void)state;
    struct job j;
    double want[MAX], got[MAX], late[MAX];
    const struct {
        const char *sync;
        int world;
    } chain[] = {{"ring", 2},
                 {"sps", 4},
                 {"zero", 4},
                 {"allreduce", 1},
                 {"dps", 2},
                 {"zero", 2},
                 {"local", 1},
                 {"dps", 4},
                 {"ring", 1},
                 {"zero", 1},
                 {"sps", 2},
                 {"zero shard=3", 4},
                 {"sps update=worker", 2},
                 {"zero shard=2", 1},
                 {"zero shard=3", 2}};
    enum { PARTS = sizeof chain / sizeof *chain, LAST = PARTS * 5 - 5 };
    for (int i = 0; i < PARTS; i++) {
        job_run(&j, 100,
                "lockstep train %s batch=%d lr=1e-3 out=chain save=5 steps=%d "
                "schedule=constant sync=%s workers=%d resume=auto",
                same, 8 / chain[i].world, (i + 1) * 5, chain[i].sync,
                chain[i].world);
        assert_ok(&j);
    }
    job_run(&j, 100,
            "lockstep train %s batch=8 lr=1e-3 out=constant steps=%d "
            "schedule=constant",
            same, PARTS * 5);
    assert_ok(&j);
    assert_int_equal(mean_loss("constant", 1, want), PARTS * 5);
    assert_int_equal(job_column("chain", "loss", 0, got, MAX), PARTS * 5);
    // rank 1 was not in every part, so it has only the rows of the last part
    assert_int_equal(job_column("chain", "loss", 1, late, MAX), 5);
    for (int i = 0; i < 5; i++) {
        double mean = (got[LAST + i] + late[i]) / 2;
        assert_true(fabs(mean - want[LAST + i]) < 1e-3 * want[LAST + i]);
    }
}

// Every process of the job ends, long before its timeout= would end it.
static void assert_no_process(void)
{
    assert_int_equal(job_processes(20), 0);
}

static void one_overflow_skips_the_step_everywhere(void **state)
{
    (void)state;
    struct job j;
    double skipped[MAX];
    for (int b = 0; b < BACKENDS; b++) {
        job_run(&j, 100,
                "rm -rf over; lockstep train %s steps=6 sync=%s workers=3 "
                "batch=4 precision=fp16 loss_scale=128 inject=inf:3@1 "
                "verify=1 out=%s/over",
                same, backends[b], job_dir());
        assert_ok(&j);
        for (int r = 0; r < 3; r++) {
            assert_int_equal(job_column("over", "skipped", r, skipped, MAX), 6);
            for (int i = 0; i < 6; i++)
                assert_true(skipped[i] == (i == 2));
        }
    }
}

// Under asp and ssp a worker's gradient is an update. If fp16 cannot hold it on
// the wire, the step is skipped, though the gradient itself is finite.
static void a_gradient_that_fp16_cannot_send_is_skipped(void **state)
{
    (void)state;
    static const char *const ways[] = {"asp", "ssp:1"};
    struct job j;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        job_run(&j, 60,
                "rm -rf sent; lockstep train %s steps=6 sync=dps workers=1 "
                "consistency=%s channels=129 batch=2 accum=4 precision=fp16 "
                "wire=fp16 out=%s/sent",
                same, ways[i], job_dir());
        assert_ok(&j);
        assert_true(job_summary("sent", "steps_skipped") > 0);
    }
}

static void one_nan_stops_all(void **state)
{
    (void)state;
    struct job j;
    for (int b = 0; b < CARRIED; b++) {
        job_run(&j, 100,
                "rm -rf nan; lockstep train %s steps=6 sync=%s workers=4 "
                "batch=3 inject=nan:3@2 out=%s/nan",
                same, backends[b], job_dir());
        if (j.status != 1 || !strstr(j.out, "the gradient of "))
            print_message("%s: %d: %s\n", backends[b], j.status, j.out);
        assert_int_equal(j.status, 1);
        assert_non_null(strstr(j.out, "step 3"));
        assert_non_null(strstr(j.out, "the gradient of "));
        assert_no_process();
    }
}

// Each fault ends the job with a message that contains `expect`.
static void faults_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *extra, *expect;
    } cases[] = {
        {"inject=kill:3@1 mesh=dp3", "rank 1 (dp 1): killed by signal 9"},
        {"inject=fail:3@2", "fails on purpose"},
        {"inject=kill:1", "killed by signal 9"},
    };
    struct job j;
    for (int b = 0; b < BACKENDS; b++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            job_run(&j, 60,
                    "rm -rf fault; lockstep train %s steps=1000 sync=%s "
                    "workers=3 batch=4 %s out=%s/fault",
                    same, backends[b], cases[i].extra, job_dir());
            if (j.status != 1 || !strstr(j.out, cases[i].expect))
                print_message("%s %s: %d: %s\n", backends[b], cases[i].extra,
                              j.status, j.out);
            assert_int_equal(j.status, 1);
            assert_non_null(strstr(j.out, cases[i].expect));
            assert_no_process();
        }
}

// Kills a server, sends Ctrl-C, or kills the launcher. Every process of the job
// ends, and a server of another job keeps running.
static void signals_end_all_processes(void **state)
{
    (void)state;
    static const struct {
        const char *sync, *kill;
        int status;
    } cases[] = {
        {"sps", "kill -9 $(server)", 1},
        {"dps", "kill -9 $(server)", 1},
        {"ring", "kill -INT $pid", 130},
        {"dps", "kill -TERM $pid", 143},
        {"dps transport=mpi", "kill -INT $pid", 130},
        {"allreduce", "kill -INT $pid", 130},
        {"sps", "kill -9 $pid", 137},
        {"ring", "kill -9 $pid", 137},
    };
    struct job j;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        job_run(&j, 60,
                "rm -rf sig; lockstep train %s steps=1000000 sync=%s workers=2 "
                "batch=4 out=%s/sig & pid=$!; "
                "until [ -s sig/steps.0.csv ] && "
                "[ $(wc -l < sig/steps.0.csv) -gt 3 ]; do sleep 0.05; done; "
                "server() { grep -ls \"(ps_server) . $pid \" "
                "/proc/[0-9]*/stat | tail -n 1 | cut -d / -f 3; }; "
                "LOCKSTEP_JOB= ps_server timeout=60 > other.txt & other=$!; "
                "until [ -s other.txt ]; do sleep 0.05; done; "
                "%s; wait $pid; status=$?; "
                "kill $other || status=99; exit $status",
                same, cases[i].sync, job_dir(), cases[i].kill);
        if (j.status != cases[i].status)
            print_message("%s %s: %d: %s\n", cases[i].sync, cases[i].kill,
                          j.status, j.out);
        assert_int_equal(j.status, cases[i].status);
        assert_no_process();
    }
}

// Workers and servers are started by hand, as on a cluster.
static void jobs_can_be_started_by_hand(void **state)
{
    (void)state;
    struct job j;
    double want[MAX], got[MAX];
    const char *words = "optimizer=sgd lr=0.2 steps=20 batch=6";
    assert_int_equal(mean_loss("local", 1, want), 20); // of the first test
    job_run(&j, 60,
            "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
            "mpirun -n 2 --oversubscribe trainer %s %s sync=ring out=hand",
            same, words);
    assert_ok(&j);
    assert_int_equal(mean_loss("hand", 2, got), 20);
    assert_close(want, got, 20, 1e-4);
    job_run(
        &j, 60,
        "for i in 0 1; do timeout 40 ps_server bind=tcp://127.0.0.1:0 "
        "index=$i servers=2 world=2 > server$i.txt & done; "
        "until grep -q @endpoint server0.txt && grep -q @endpoint "
        "server1.txt; do sleep 0.05; done; "
        "s=$(sed -n 's/@endpoint //p' server0.txt server1.txt | paste -sd,);"
        "trainer %s %s sync=dps world=2 rank=1 servers=$s "
        "out=servers & trainer %s %s sync=dps world=2 rank=0 servers=$s "
        "out=servers; a=$?; wait $!; b=$?; wait; "
        "exit $((a + b))",
        same, words, same, words);
    assert_ok(&j);
    assert_int_equal(mean_loss("servers", 2, got), 20);
    assert_close(want, got, 20, 1e-4);
    job_run(&j, 30,
            "unset GOMP_SPINCOUNT OMP_WAIT_POLICY; "
            "trainer %s steps=1000000 out=alone & p=$!; "
            "until [ -s alone/steps.csv ]; do sleep 0.05; done; "
            "tr '\\0' '\\n' < /proc/$p/environ | grep GOMP; kill $p; wait $p",
            same);
    assert_non_null(strstr(j.out, "GOMP_SPINCOUNT=1000"));
    assert_no_process();
}

// The hosts file has two names of this host. A script takes the place of ssh.
static void a_hosts_file_places_the_processes(void **state)
{
    (void)state;
    struct job j;
    double want[MAX], got[MAX];
    static const char *const servers[] = {"sps", "dps"};
    assert_int_equal(mean_loss("local", 1, want), 20); // of the first test
    job_run(&j, 10,
            "printf '127.0.0.1\\n# or\\n127.0.0.2 slots=2\\n' > hosts; "
            "printf '#!/bin/sh\\necho $1 >> asked\\nshift\\n"
            "exec sh -c \"$*\"\\n' > rsh; chmod +x rsh");
    assert_ok(&j);
    for (int b = 0; b < 2; b++) {
        job_run(&j, 60,
                "LOCKSTEP_RSH=%s/rsh lockstep train %s optimizer=sgd lr=0.2 "
                "steps=20 batch=4 sync=%s workers=3 hosts=hosts out=hosts-%s",
                job_dir(), same, servers[b], servers[b]);
        assert_ok(&j);
        char out[32];
        snprintf(out, sizeof out, "hosts-%s", servers[b]);
        assert_int_equal(mean_loss(out, 3, got), 20);
        assert_close(want, got, 20, 1e-4);
        assert_no_process();
    }
    job_run(&j, 10, "sort asked | uniq -c | tr -s ' \\n' ' '");
    assert_string_equal(j.out, " 4 127.0.0.1 6 127.0.0.2 ");
    job_run(&j, 60,
            "LOCKSTEP_RSH=%s/rsh lockstep train %s steps=1000000 sync=dps "
            "workers=2 batch=4 hosts=hosts out=%s/far & pid=$!; "
            "until [ -s far/steps.0.csv ] && "
            "[ $(wc -l < far/steps.0.csv) -gt 3 ]; do sleep 0.05; done; "
            "kill -9 $pid; wait $pid",
            job_dir(), same, job_dir());
    assert_int_equal(j.status, 137);
    assert_no_process();
    job_run(&j, 20,
            "echo 127.0.0.1 slots=0 > hosts; lockstep train %s "
            "sync=sps workers=2 hosts=hosts out=none",
            same);
    assert_int_equal(j.status, 1);
    assert_non_null(strstr(j.out, "slots=0: must be slots=N, 1 .. 4096"));
    assert_false(job_has("none"));
}

// A setting that needs ZeroMQ is refused with transport=mpi, and no folder is
// made.
static void settings_of_zmq_are_refused_over_mpi(void **state)
{
    (void)state;
    static const char *const words[] = {"elastic=1", "hosts=hosts",
                                        "curve=keys",
                                        "servers=tcp://127.0.0.1:1"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        struct job j;
        job_run(
            &j, 20,
            "lockstep train %s sync=sps workers=2 transport=mpi %s out=none",
            same, words[i]);
        assert_int_equal(j.status, 1);
        assert_non_null(strstr(j.out, " with transport=mpi; try: "
                                      "transport=zmq"));
        assert_false(job_has("none"));
    }
}

// With elastic=1 the others go on when a worker dies, and it can join them
// again.
static void an_elastic_job_survives_a_dead_worker(void **state)
{
    (void)state;
    struct job j;
    double step[MAX];
    job_run(&j, 90,
            "timeout 80 ps_server bind=tcp://127.0.0.1:0 timeout=20 > e.txt & "
            "until grep -q @endpoint e.txt; do sleep 0.05; done; "
            "s=$(sed -n 's/@endpoint //p' e.txt); "
            "w='%s steps=150 batch=4 sync=sps world=3 elastic=1 out=e "
            "straggler=0:10 slice_kb=16'; "
            "trainer $w rank=0 servers=$s & a=$!; "
            "trainer $w rank=1 servers=$s & b=$!; "
            "trainer $w rank=2 servers=$s inject=kill:10@2; "
            "until [ $(wc -l < e/steps.0.csv) -gt 30 ]; do sleep 0.02; done; "
            "trainer $w rank=2 servers=$s; c=$?; "
            "wait $a; ra=$?; wait $b; rb=$?; wait; echo $ra $rb $c; "
            "exit $((ra + rb + c))",
            same);
    assert_ok(&j);
    assert_non_null(strstr(j.out, "going on without it"));
    assert_non_null(strstr(j.out, "joins a running job"));
    assert_int_equal(job_column("e", "step", 0, step, MAX), 150);
    assert_int_equal(job_column("e", "step", 1, step, MAX), 150);
    int n = job_column("e", "step", 2, step, MAX);
    assert_true(n > 20 && n < 150 && step[n - 1] == 150);
    for (int i = 1; i < 9; i++)
        assert_true(step[i] == i + 1); // before it died
    assert_int_equal(job_column("e", "time_s", 2, step, MAX), n);
    for (int i = 1; i < n; i++) // time goes on after it is back
        assert_true(step[i] > step[i - 1]);
    assert_no_process();
}

// With backup=1 a late worker goes on from the step that the others have
// reached. So all compare their parameters at the same steps, and end together.
static void a_late_worker_catches_up(void **state)
{
    (void)state;
    struct job j;
    double step[MAX];
    job_run(&j, 90,
            "lockstep train %s steps=40 sync=sps workers=3 backup=1 timeout=20 "
            "inject=delay:5:1000@2 verify=20 out=backup",
            same);
    assert_ok(&j);
    for (int r = 0; r < 3; r++) {
        int n = job_column("backup", "step", r, step, MAX);
        assert_true(n > 0 && step[n - 1] == 40);
    }
    assert_no_process();
}

// Without bsp the first worker to end waits for the last one, for longer than
// the deadline.
static void the_first_to_end_waits_for_the_last(void **state)
{
    (void)state;
    static const char *const ways[] = {"consistency=asp", "backup=1"};
    struct job j;
    double step[MAX];
    for (int i = 0; i < 2; i++) {
        job_run(&j, 60,
                "rm -rf late; lockstep train %s steps=4 sync=sps workers=3 %s "
                "timeout=2 inject=delay:3:5000@1 out=late",
                same, ways[i]);
        assert_ok(&j);
        int n = job_column("late", "step", 1, step, MAX);
        assert_true(n > 0 && step[n - 1] == 4);
    }
    assert_no_process();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(n_workers_train_like_one),
        cmocka_unit_test(reruns_repeat_their_bits),
        cmocka_unit_test(any_backend_resumes_any_other),
        cmocka_unit_test(one_overflow_skips_the_step_everywhere),
        cmocka_unit_test(a_gradient_that_fp16_cannot_send_is_skipped),
        cmocka_unit_test(one_nan_stops_all),
        cmocka_unit_test(faults_are_named),
        cmocka_unit_test(signals_end_all_processes),
        cmocka_unit_test(jobs_can_be_started_by_hand),
        cmocka_unit_test(a_hosts_file_places_the_processes),
        cmocka_unit_test(settings_of_zmq_are_refused_over_mpi),
        cmocka_unit_test(an_elastic_job_survives_a_dead_worker),
        cmocka_unit_test(a_late_worker_catches_up),
        cmocka_unit_test(the_first_to_end_waits_for_the_last),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, job_text, job_cleanup);
}
