// test_owner_jobs.c - whole jobs of sync=dataparallel, whose worker 0 owns the
// parameters: they end with the ring's files to the byte, every worker moves
// the bytes of the law, and faults are named.

#include "base/base.h"
#include "tests/job.h"
#include "tests/job_asserts.h"

#include <math.h>
#include <stdlib.h>

enum { MOST = 32 };

static const char same[] =
    "data=text.txt model=nano layers=2 channels=96 heads=3 context=32 eval=3 "
    "eval_batches=2 log=1 warmup=0 timeout=30 threads=1 batch=2 clip=0.1 "
    "schedule=constant verify=1 trace=off samples=0";

static void train(const char *out, int steps, const char *words)
{
    struct job j;
    job_run(&j, 100, "lockstep train %s save=3 resume=auto steps=%d %s out=%s",
            same, steps, words, out);
    assert_ok(&j);
}

// The sum of two numbers does not depend on their order. The tokens of a worker
// do not depend on which worker reads them from the data. So the files equal
// those of the ring.
static void files_equal_those_of_the_ring(void **state)
{
    (void)state;
    static const struct {
        const char *words, *part[2];
    } runs[] = {
        {"accum=2", {"dataparallel", "dataparallel transport=tcp"}},
        {"accum=2 staging=always", {"ring", "dataparallel"}},
        {"precision=bf16 dropout=0.1", {"dataparallel", "ring"}},
        {"precision=fp16 loss_scale=128 inject=inf:2@1",
         {"dataparallel", "dataparallel"}},
    };
    struct job j;
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        char words[256];
        job_run(&j, 20, "rm -rf like run");
        for (int k = 0; k < 2; k++) {
            snprintf(words, sizeof words, "workers=2 sync=ring %s",
                     runs[i].words);
            train("like", 3 + 3 * k, words);
            snprintf(words, sizeof words, "workers=2 %s sync=%s", runs[i].words,
                     runs[i].part[k]);
            train("run", 3 + 3 * k, words);
        }
        job_run(&j, 20,
                "for f in model optimizer; do cmp like/checkpoint-6/$f."
                "safetensors run/checkpoint-6/$f.safetensors || exit 1; done; "
                "cut -d, -f3,4,7-11,23 like/steps.csv > a; "
                "cut -d, -f3,4,7-11,23 run/steps.csv | diff a -");
        assert_ok(&j);
    }
}

// With four workers and gradients of S bytes, 3 S go into worker 0 and 3 S out
// of it. At each other worker S go in and S out. Printed lines show the mean
// loss, which worker 0 has gathered.
static void bytes_follow_the_law(void **state)
{
    (void)state;
    struct job j;
    double out[MOST], in[MOST], loss[MOST], mean = 0;
    job_run(&j, 100,
            "lockstep train %s steps=2 workers=4 sync=dataparallel "
            "out=%s/four",
            same, job_dir());
    assert_ok(&j);
    assert_prints(&j, "means over all workers");
    const char *line = strstr(j.out, "step 2/2  loss ");
    assert_non_null(line);
    double printed = atof(line + strlen("step 2/2  loss "));
    double S = job_summary("four", "bytes_tx") / 2 / 6;
    assert_true(S > 4e5);
    for (int r = 0; r < 4; r++) {
        assert_int_equal(job_column("four", "bytes_tx", r, out, MOST), 2);
        assert_int_equal(job_column("four", "bytes_rx", r, in, MOST), 2);
        assert_int_equal(job_column("four", "loss", r, loss, MOST), 2);
        for (int i = 0; i < 2; i++) {
            assert_true(out[i] == (r ? S : 3 * S));
            assert_true(in[i] == (r ? S : 3 * S));
        }
        mean += loss[1] / 4;
    }
    assert_true(fabs(printed - mean) < 1e-4);
}

static void faults_and_bad_settings_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *words, *says;
    } cases[] = {
        {"inject=nan:3@2", "the gradient of "},
        {"inject=kill:3@1", "killed by signal 9"},
        {"inject=kill:3", "killed by signal 9"},
        {"wire=fp16", "dataparallel has no such setting"},
        {"elastic=1", "dataparallel has no such setting"},
        {"shard=2", "dataparallel has no such setting"},
        {"transport=zmq", "not one of auto, tcp"},
    };
    struct job j;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        job_run(&j, 60,
                "rm -rf ill; lockstep train %s steps=6 workers=3 "
                "sync=dataparallel %s out=%s/ill",
                same, cases[i].words, job_dir());
        assert_int_equal(j.status, 1);
        assert_prints(&j, cases[i].says);
        assert_int_equal(job_processes(20), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_equal_those_of_the_ring),
        cmocka_unit_test(bytes_follow_the_law),
        cmocka_unit_test(faults_and_bad_settings_are_named),
    };
    return cmocka_run_group_tests(tests, job_text, job_cleanup);
}
