// test_shard_jobs.c - whole jobs with vectors in shards. They write the same
// files as the ring, to the byte, and take less memory.

#include "base/base.h"
#include "tests/job.h"

#include <math.h>
#include <stdlib.h>

#include "tests/test.h"

// A small but real model. Buckets and slices are so small that there are
// several.
static const char same[] =
    "data=text.txt model=nano layers=4 heads=3 context=32 eval=3 "
    "eval_batches=2 log=0 warmup=0 timeout=30 threads=1 bucket_mb=0.05";

static int write_text(void **state)
{
    (void)state;
    char path[256];
    snprintf(path, sizeof path, "%s/text.txt", job_dir());
    FILE *f = fopen(path, "w");
    for (int i = 0; i < 3000; i++)
        fprintf(f, "int a%d = %d + b;\n", i * 7 % 40, i % 13);
    return fclose(f);
}

static void assert_ok(const struct job *j)
{
    if (j->status)
        print_message("%s\n", j->out);
    assert_int_equal(j->status, 0);
}

// A run in two parts of three steps, each with its own settings. The files of
// the run must equal those of run number `like`, an earlier one or itself.
struct parts {
    const char *part[2];
    int like;
};

static void same_files(const char *name, const char *words,
                       const struct parts *runs, int n)
{
    struct job j;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < 2; k++) {
            job_run(&j, 100,
                    "lockstep train %s channels=96 batch=4 save=3 schedule="
                    "constant clip=0.1 verify=1 resume=auto %s %s out=%s%d "
                    "steps=%d",
                    same, words, runs[i].part[k], name, i, 3 + 3 * k);
            assert_ok(&j);
            job_run(&j, 20,
                    "for f in model optimizer; do cmp %s%d/checkpoint-%d/$f."
                    "safetensors %s%d/checkpoint-%d/$f.safetensors || exit "
                    "1; done",
                    name, runs[i].like, 3 + 3 * k, name, i, 3 + 3 * k);
            assert_ok(&j);
        }
}

// The sum of two numbers is the same in either order. So two workers write
// exactly the ring's files, over either carrier, also if the ring runs one of
// the two parts.
static void shards_are_the_rings_to_the_byte(void **state)
{
    (void)state;
    static const struct parts half[] = {
        {{"sync=ring", "sync=ring"}, 0},
        {{"sync=zero", "sync=zero transport=library"}, 0},
        {{"sync=ring", "sync=zero transport=tcp"}, 0},
        {{"sync=zero", "sync=ring"}, 0},
        {{"sync=ring precision=bf16", "sync=ring precision=bf16"}, 4},
        {{"sync=zero precision=bf16", "sync=ring precision=bf16"}, 4},
        {{"sync=ring precision=bf16", "sync=zero precision=bf16"}, 4},
    };
    static const struct parts more[] = {
        {{"sync=ring", "sync=ring"}, 0},
        {{"sync=zero shard=3", "sync=zero shard=3 transport=library"}, 0},
        {{"sync=ring", "sync=zero shard=2"}, 0},
        {{"sync=zero shard=3 transport=tcp", "sync=zero"}, 0},
        {{"sync=ring precision=bf16", "sync=ring precision=bf16"}, 4},
        {{"sync=zero shard=3 precision=bf16", "sync=ring precision=bf16"}, 4},
        {{"sync=zero shard=2 precision=bf16",
          "sync=zero shard=3 precision=bf16"},
         4},
    };
    same_files("half", "workers=2 accum=2", half, 7);
    same_files("more", "workers=2 dropout=0.1", more, 7);
}

// More than two workers also write equal files, if vectors are divided in the
// same way and each micro-batch has its own sum.
static void shards_agree_to_the_byte(void **state)
{
    (void)state;
    static const struct parts one[] = {
        {{"shard=1 bucket=block", "shard=1 bucket=block"}, 0},
        {{"shard=2", "shard=3 transport=tcp overlap=0"}, 0},
        {{"shard=3 precision=fp16", "shard=2 precision=fp16"}, 2},
        {{"bucket=block precision=fp16", "shard=3 precision=fp16"}, 2},
    };
    static const struct parts four[] = {
        {{"shard=2", "shard=3"}, 0},
        {{"shard=3", "shard=2"}, 0},
    };
    same_files("one", "sync=zero workers=3 dropout=0.1", one, 4);
    same_files("four", "sync=zero workers=3 accum=4", four, 2);
}

// A NaN of one rank ends the job. An overflow of one rank in 16 bits makes all
// ranks skip the step. Both hold also if no worker has all gradients.
static void one_rank_is_not_finite(void **state)
{
    (void)state;
    struct job j;
    double skipped[8];
    for (int shard = 2; shard <= 3; shard++) {
        job_run(&j, 60,
                "rm -rf odd; lockstep train %s channels=96 sync=zero shard=%d "
                "workers=3 batch=1 steps=4 inject=nan:3@2 out=odd",
                same, shard);
        assert_int_equal(j.status, 1);
        assert_non_null(strstr(j.out, "step 3: the gradient of "));
        job_run(&j, 60,
                "rm -rf odd; lockstep train %s channels=96 sync=zero shard=%d "
                "workers=3 batch=1 steps=4 verify=1 precision=fp16 "
                "loss_scale=128 inject=inf:2@1 out=odd",
                same, shard);
        assert_ok(&j);
        for (int r = 0; r < 3; r++) {
            assert_int_equal(job_column("odd", "skipped", r, skipped, 8), 4);
            for (int i = 0; i < 4; i++)
                assert_true(skipped[i] == (i == 1));
        }
    }
}

// With init=, workers read their ranges of a file of weights.
static void read_weights(void)
{
    static const char *const ways[] = {"sync=ring", "sync=zero shard=3"};
    struct job j;
    for (int k = 0; k < 2; k++) {
        job_run(&j, 60,
                "lockstep train %s init=there/checkpoint-3/model.safetensors "
                "heads=3 batch=1 workers=2 steps=2 save=2 %s out=init%d",
                same, ways[k], k);
        assert_ok(&j);
    }
    job_run(&j, 20,
            "cmp init0/checkpoint-2/model.safetensors "
            "init1/checkpoint-2/model.safetensors");
    assert_ok(&j);
}

// A checkpoint is resumed and saved by every strategy, and must not change.
// Each way resumes it, runs one step, and saves. The step is skipped, because
// its gradient overflows.
static void a_checkpoint_goes_there_and_back(void **state)
{
    (void)state;
    static const char *const ways[] = {
        "sync=zero shard=3 workers=4",
        "sync=local workers=1",
        "sync=zero shard=1 workers=3 transport=tcp staging=always",
        "sync=dps workers=2 transport=auto",
        "sync=zero shard=2 workers=2",
        "sync=zero shard=3 workers=1",
        "sync=zero shard=3 workers=3 precision=bf16",
        "sync=ring workers=4 precision=fp32",
    };
    static const char run[] =
        "lockstep train %s channels=96 batch=1 save=1 keep=20 resume=auto "
        "schedule=constant out=there";
    char first[512], again[640];
    struct job j;
    snprintf(first, sizeof first, run, same);
    job_run(&j, 60, "%s steps=3 sync=ring workers=2", first);
    assert_ok(&j);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        int step = 4 + (int)i;
        snprintf(again, sizeof again, "%s %s", first, ways[i]);
        job_run(&j, 60, "%s steps=%d loss_scale=1 inject=inf:1", again, step);
        assert_ok(&j);
        assert_int_equal(job_summary("there", "steps_skipped"), i + 1);
        job_run(&j, 20,
                "cd there; for f in model optimizer; do cmp checkpoint-3/$f."
                "safetensors checkpoint-%d/$f.safetensors || exit 1; done",
                step);
        assert_ok(&j);
    }
    read_weights();
}

struct shape {
    const char *words;
    double L, C, V, T;
};

// Worker 0's peak of memory in bytes, from the system.
static double peak(const struct shape *m, const char *way, const char *out)
{
    struct job j;
    job_run(&j, 600,
            "lockstep train data=text.txt %s batch=1 threads=1 eval=0 log=0 "
            "steps=2 trace=off samples=0 %s workers=4 transport=tcp out=%s",
            m->words, way, out);
    assert_ok(&j);
    return job_summary(out, "peak_memory_bytes");
}

// With each shard= a worker saves as much memory as the law says. With P
// parameters in all, U in a layer, E in the embeddings, F in ln_f, and w
// workers, a worker holds, in bytes,
//
//     ring 16P | 1: 8P + 8P/w | 2: 4P + 12P/w + 4B | 3: 16P/w + 8B
//
// with B = 2U + E + F. The long test runs with gpt2.
static void memory_falls_by_the_law(void **state)
{
    (void)state;
    static const char *const ways[] = {"sync=ring", "sync=zero",
                                       "sync=zero shard=2",
                                       "sync=zero shard=3"};
    static const struct shape shapes[] = {
        {"layers=8 channels=256 heads=4 context=16 vocab_size=256", 8, 256, 256,
         16},
        {"model=gpt2 context=64", 12, 768, 50257, 64}};
    const struct shape *m = &shapes[test_long()];
    const double w = 4, U = 12 * m->C * m->C + 13 * m->C, F = 2 * m->C;
    const double E = (m->V + m->T) * m->C, B = 2 * U + E + F;
    const double P = E + m->L * U + F;
    const double law[] = {16 * P, 8 * P + 8 * P / w, 4 * P + 12 * P / w + 4 * B,
                          16 * P / w + 8 * B};
    double at[4];
    if (TEST_SANITIZED)
        skip(); // its memory is mostly the sanitizer's
    for (int k = 0; k < 4; k++) {
        char out[16];
        snprintf(out, sizeof out, "memory%d", k);
        at[k] = peak(m, ways[k], out);
        double fell = at[0] - at[k], want = law[0] - law[k];
        print_message("%s: %.1f MB below the ring, the law: %.1f\n", ways[k],
                      fell * 1e-6, want * 1e-6);
        assert_true(fabs(fell - want) < 0.02 * law[0]);
    }
}

// For every verb, the law in the report equals the count of a job's workers.
static void verbs_are_the_laws(void **state)
{
    (void)state;
    static const char *const ways[] = {"shard=1 accum=2",
                                       "shard=2 accum=4",
                                       "shard=3 accum=2",
                                       "shard=3",
                                       "shard=1 precision=bf16",
                                       "shard=1 precision=bf16 staging=always"};
    enum { WAYS = sizeof ways / sizeof *ways };
    struct job j;
    for (int k = 0; k < WAYS; k++) {
        job_run(&j, 60,
                "lockstep train %s channels=96 batch=1 sync=zero "
                "transport=tcp workers=3 steps=3 eval=0 trace=off samples=0 "
                "%s out=verbs%d",
                same, ways[k], k);
        assert_ok(&j);
    }
    job_run(&j, 60,
            "lockstep report verbs? out=verbs figure=verbs > verbs.txt; "
            "awk -F, 'NR > 1 { for (i = 4; i < NF; i += 2) { n += $i > 0; if "
            "($i - $(i + 1) > 1e-6 * $i || $(i + 1) - $i > 1e-6 * $i) print "
            "$1, i, $i, $(i + 1) } } END { print NR - 1, n }' verbs/verbs.csv");
    assert_ok(&j);
    print_message("%s", j.out);
    assert_string_equal(j.out, "6 18\n");
}

// The blocks of worker 0's spans `gather` in DIR/trace.json, in their order.
static void blocks_in_trace(const char *dir, char out[64])
{
    struct job j;
    job_run(&j, 20,
            "sed -n 's/.*\"gather\".*\"pid\": 0, .*\"block\": "
            "\\([0-9]*\\).*/\\1/p' %s/trace.json | tr -d '\\n'",
            dir);
    assert_ok(&j);
    snprintf(out, 64, "%s", j.out);
}

// Each pass asks for the blocks in its own order. Backward asks for the
// embeddings first, because the head begins their gradient. With shard=2
// forward has all parameters.
static void the_trace_shows_each_gather(void **state)
{
    (void)state;
    static const struct {
        const char *way, *blocks;
    } cases[] = {
        {"shard=3", "012345054321012345054321"},
        {"shard=3 accum=2 steps=1", "012345054321012345054321"},
        {"shard=2", "054321054321"},
    };
    char dir[16], have[64];
    struct job j;
    for (int k = 0; k < 3; k++) {
        job_run(&j, 60,
                "lockstep train %s channels=96 batch=1 sync=zero transport=shm "
                "workers=2 steps=2 eval=0 samples=0 %s out=trace%d",
                same, cases[k].way, k);
        assert_ok(&j);
        snprintf(dir, sizeof dir, "trace%d", k);
        blocks_in_trace(dir, have);
        assert_string_equal(have, cases[k].blocks);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shards_are_the_rings_to_the_byte),
        cmocka_unit_test(shards_agree_to_the_byte),
        cmocka_unit_test(one_rank_is_not_finite),
        cmocka_unit_test(a_checkpoint_goes_there_and_back),
        cmocka_unit_test(memory_falls_by_the_law),
        cmocka_unit_test(verbs_are_the_laws),
        cmocka_unit_test(the_trace_shows_each_gather),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, write_text, job_cleanup);
}
