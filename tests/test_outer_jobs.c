// test_outer_jobs.c - whole jobs of sync=outer, whose workers exchange only
// every few steps: the checkpoints that they save and resume, their counters,
// and the settings that they refuse.

#include "base/base.h"
#include "tests/job_asserts.h"

#include <math.h>
#include <stdlib.h>

enum { MAX = 100 };

static const char tiny[] =
    "data=text.txt model=nano layers=2 channels=32 heads=2 context=16 batch=2 "
    "dropout=0.1 eval_batches=2 log=0 warmup=0 timeout=30 threads=1 samples=0 "
    "trace=off";

// A worker dies between two outer steps. The job must end with the same files
// and rows as without the death.
static void a_restarted_job_ends_with_the_same_files(void **state)
{
    (void)state;
    static const char *const ways[] = {
        "transport=tcp",
        "outer_lr=0.7 outer_momentum=0.9 precision=bf16 accum=2 eval=10"};
    struct job j;
    for (int i = 0; i < 2; i++) {
        job_run(&j, 100,
                "rm -rf calm ill; lockstep train %s sync=outer every=5 %s "
                "workers=2 steps=33 save=10 verify=5 out=calm && lockstep "
                "train %s sync=outer every=5 %s workers=2 steps=33 save=10 "
                "verify=5 restarts=1 inject=kill:17@%d out=ill",
                tiny, ways[i], tiny, ways[i], i);
        assert_ok(&j);
        assert_prints(&j, "restart 1 of 1 in 1 s, from checkpoint-10");
        assert_same_files("calm", "ill", 33); // the last, not a multiple of 5
        job_run(&j, 20,
                "cut -d, -f3,4,7,9,13 calm/steps.csv > a; "
                "cut -d, -f3,4,7,9,13 ill/steps.csv | diff a -");
        assert_ok(&j);
    }
}

// One worker alone equals sync=local. Two workers with every=1 and SGD compute
// the same as the ring, within rounding.
static void one_worker_is_local_and_every_1_is_the_ring(void **state)
{
    (void)state;
    struct job j;
    double a[MAX], b[MAX];
    job_run(&j, 60,
            "lockstep train %s sync=outer every=7 workers=1 steps=21 save=7 "
            "out=one && lockstep train %s steps=21 save=7 out=local",
            tiny, tiny);
    assert_ok(&j);
    assert_same_files("one", "local", 21);
    for (int half = 0; half < 2; half++) {
        const char *sgd = half ? "optimizer=sgd lr=0.1 clip=0 precision=bf16"
                               : "optimizer=sgd lr=0.1 clip=0";
        job_run(&j, 60,
                "rm -rf each ring; lockstep train %s %s sync=outer every=1 "
                "workers=2 steps=20 out=each && lockstep train %s %s sync=ring "
                "workers=2 steps=20 out=ring",
                tiny, sgd, tiny, sgd);
        assert_ok(&j);
        assert_int_equal(job_column("each", "loss", 1, a, MAX), 20);
        assert_int_equal(job_column("ring", "loss", 1, b, MAX), 20);
        for (int i = 0; i < 20; i++)
            assert_true(fabs(a[i] - b[i]) < (half ? 5e-3 : 1e-5) * b[i]);
    }
}

// Bytes are sent only in steps with lag 0. Their sum is that of the ring,
// divided by every=.
static void bytes_and_lag_are_counted(void **state)
{
    (void)state;
    struct job j;
    double bytes[MAX], lag[MAX], ring[MAX], sum = 0, rings = 0;
    job_run(&j, 100,
            "lockstep train %s sync=outer every=4 workers=3 steps=12 eval=6 "
            "transport=tcp wire=fp16 out=counts && lockstep train %s sync=ring "
            "workers=3 steps=3 transport=tcp wire=fp16 out=rings",
            tiny, tiny);
    assert_ok(&j);
    for (int r = 0; r < 3; r++) {
        assert_int_equal(job_column("counts", "bytes_tx", r, bytes, MAX), 12);
        assert_int_equal(job_column("counts", "lag", r, lag, MAX), 12);
        assert_int_equal(job_column("rings", "bytes_tx", r, ring, MAX), 3);
        for (int i = 0; i < 12; i++) {
            assert_true(lag[i] == 2 * ((i + 1) % 4));
            assert_true((bytes[i] > 0) == (lag[i] == 0));
            sum += bytes[i];
        }
        rings += ring[0] + ring[1] + ring[2];
    }
    assert_true(sum == rings); // 12 steps with every=4: 3 of the ring
}

// A checkpoint of the ring can be resumed with outer and the other way round,
// with more and with fewer workers, over either carrier.
static void checkpoints_resume_under_other_backends(void **state)
{
    (void)state;
    static const char *const ways[] = {
        "sync=ring workers=2",
        "sync=outer every=4 workers=2 outer_lr=0.7 "
        "outer_momentum=0.9",
        "sync=outer every=2 workers=3 outer_lr=0.7 outer_momentum=0.9 "
        "transport=library",
        "sync=outer every=2 workers=2 wire=bf16",
        "sync=dps workers=2",
        "sync=outer every=4 workers=1 outer_lr=0.7 "
        "outer_momentum=0.9"};
    struct job j;
    for (int i = 0; i < 6; i++) {
        job_run(&j, 60,
                "lockstep train %s %s save=4 resume=auto schedule=constant "
                "steps=%d out=tour",
                tiny, ways[i], 4 * (i + 1));
        assert_ok(&j);
    }
    assert_true(job_summary("tour", "steps") == 24);
    job_run(&j, 20,
            "strings -n 4 tour/checkpoint-24/optimizer.safetensors | head -1");
    assert_prints(&j, "\"slots\":\"exp_avg exp_avg_sq outer_velocity\"");
}

// Outer steps follow the number of steps, not of updates. So a run that resumes
// a checkpoint with a skipped step still takes them in the steps in which it
// saves and verifies.
static void outer_steps_do_not_shift_after_a_skipped_step(void **state)
{
    (void)state;
    struct job j;
    double lag[MAX];
    job_run(&j, 60,
            "lockstep train %s sync=local precision=fp16 inject=inf:1 steps=4 "
            "save=4 out=skipped && lockstep train %s sync=outer every=2 "
            "precision=fp32 workers=2 steps=8 save=2 verify=2 resume=auto "
            "out=skipped",
            tiny, tiny);
    assert_ok(&j);
    assert_true(job_summary("skipped", "steps") == 8);
    int n = job_column("skipped", "lag", 1, lag, MAX);
    assert_true(n >= 4);
    for (int i = 0; i < 4; i++)
        assert_true(lag[n - 4 + i] == (i + 1) % 2);
}

static void impossible_settings_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *words, *says;
    } bad[] = {
        {"save=6 out=no", "save=6 is no multiple of every=4, and in between "
                          "workers' parameters differ; try: save=8"},
        {"verify=3", "verify=3 is no multiple of every=4"},
        {"precision=fp16", "try: precision=bf16"},
        {"loss_scale=8", "and no loss_scale="},
        {"outer_rule=nesterov", "try: outer_lr= and outer_momentum="},
        {"overlap=0", "overlap=0: outer has no such setting"},
        {"elastic=1", "elastic=1: outer has no such setting"},
        {"consistency=asp", "consistency=asp: outer has no such setting"},
        {"shard=2", "shard=2: outer has no such setting"},
        {"save=4 save_async=1 out=no", "try: save_async=0"},
        {"inject=nan:2@1", "the gradient of"},
    };
    struct job j;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        job_run(&j, 60,
                "lockstep train %s sync=outer every=4 workers=2 steps=8 %s",
                tiny, bad[i].words);
        assert_status(&j, 1);
        assert_prints(&j, bad[i].says);
    }
    assert_false(job_has("no"));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_restarted_job_ends_with_the_same_files),
        cmocka_unit_test(one_worker_is_local_and_every_1_is_the_ring),
        cmocka_unit_test(bytes_and_lag_are_counted),
        cmocka_unit_test(checkpoints_resume_under_other_backends),
        cmocka_unit_test(outer_steps_do_not_shift_after_a_skipped_step),
        cmocka_unit_test(impossible_settings_are_refused),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, job_text, job_cleanup);
}
