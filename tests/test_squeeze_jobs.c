// test_squeeze_jobs.c - whole jobs with squeeze=: their bytes are those of the
// law, killed and resumed jobs end with the same files, replicas stay equal,
// and settings without meaning are refused.

#include "base/base.h"
#include "tests/job_asserts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX = 100 };

static const char tiny[] =
    "data=text.txt model=nano layers=2 channels=32 heads=2 context=16 batch=2 "
    "eval_batches=2 log=0 eval=0 warmup=0 timeout=30 threads=1 samples=0 "
    "bucket_mb=0.03";

static const char *const ways[] = {
    "sync=ring squeeze=topk density=0.02 transport=tcp",
    ("sync=ring squeeze=topk density=0.02 scope=tensor squeeze_after=3 "
     "transport=tcp"),
    "sync=ring squeeze=int8 levels=15 transport=tcp accum=2",
    "sync=allreduce squeeze=sign precision=bf16",
    "sync=ring squeeze=sign scope=model transport=shm overlap=0",
    "sync=ring squeeze=topk feedback=0 precision=fp16 staging=always",
    "sync=ring squeeze=power squeeze_rank=2 transport=tcp squeeze_after=2",
    "sync=allreduce squeeze=power feedback=0 precision=bf16",
    "sync=sps squeeze=topk density=0.02 squeeze_after=2",
    "sync=ring squeeze=topk density=0.02 momentum_correction=1 optimizer=sgd",
    "sync=ring squeeze=demo optimizer=sgd momentum=0.99 transport=tcp accum=2",
    "sync=allreduce squeeze=demo density=0.1 optimizer=sgd precision=bf16",
    "sync=dps squeeze=sign slice_kb=4",
    "sync=ring squeeze=sign freeze=3 transport=tcp accum=2",
    ("sync=allreduce squeeze=sign freeze=5 feedback=0 precision=fp16 "
     "loss_scale=256 staging=always"),
    "sync=dps squeeze=sign freeze=2 precision=bf16",
    "sync=zero squeeze=int8 levels=15 transport=tcp accum=2 squeeze_after=2",
    "sync=zero squeeze=sign transport=library precision=bf16",
    ("sync=zero squeeze=topk density=0.02 momentum_correction=1 optimizer=sgd "
     "transport=shm overlap=0"),
    ("sync=zero shard=2 squeeze=int8 levels=15 feedback=0 transport=tcp "
     "accum=3 squeeze_after=2"),
    ("sync=zero shard=3 squeeze=sign feedback=0 transport=shm precision=bf16 "
     "accum=2"),
    ("sync=zero shard=2 squeeze=topk density=0.02 feedback=0 transport=library "
     "precision=fp16 overlap=0"),
    "sync=dps servers=3 squeeze=int8 feedback=0 transport=mpi",
};
enum { WAYS = sizeof ways / sizeof *ways };

// A killed job, and a job that is resumed in parts, end with the same files and
// rows as a job that nobody disturbed. verify=1 compares replicas each step.
static void disturbed_jobs_end_with_the_same_files(void **state)
{
    (void)state;
    struct job j;
    for (int i = 0; i < WAYS; i++) {
        job_run(&j, 100,
                "rm -rf calm ill; lockstep train %s %s workers=2 steps=11 "
                "save=4 verify=1 out=calm && lockstep train %s %s workers=2 "
                "steps=11 save=4 restarts=1 inject=kill:7@%d "
                "out=ill",
                tiny, ways[i], tiny, ways[i], i % 2);
        assert_ok(&j);
        assert_same_files("calm", "ill", 11);
        job_run(&j, 20,
                "cut -d, -f3,4,7,9,13 calm/steps.csv > a; "
                "cut -d, -f3,4,7,9,13 ill/steps.csv | diff a -");
        assert_ok(&j);
    }
}

// How many workers may have a law that no carrier changes.
static int most_workers(const char *way)
{
    bool sums = strstr(way, "zero") && !strstr(way, "tcp");
    return strstr(way, "ring") || (strstr(way, "zero") && !sums) ? 3 : 2;
}

// Every worker sends in every step what run.json says of the law; with
// squeeze_after= and freeze=, on average. A library counts what it is given,
// and a server beside a worker counts for two, which is the law's for two
// workers.
static void bytes_are_those_of_the_law(void **state)
{
    (void)state;
    struct job j;
    double sent[MAX];
    for (int i = 0; i < WAYS; i++)
        for (int world = 2; world <= most_workers(ways[i]); world++) {
            double sum = 0, law = 0;
            job_run(&j, 60,
                    "rm -rf law; lockstep train %s %s workers=%d steps=6 "
                    "out=law && grep bytes_tx law/run.json",
                    tiny, ways[i], world);
            assert_ok(&j);
            const char *at = strstr(j.out, "\"bytes_tx\":");
            assert_non_null(at);
            law = strtod(at + strlen("\"bytes_tx\":"), NULL);
            for (int r = 0; r < world; r++) {
                assert_int_equal(job_column("law", "bytes_tx", r, sent, MAX),
                                 6);
                for (int k = 0; k < 6; k++)
                    sum += sent[k] / 6 / world;
            }
            assert_true(law > 0 && fabs(sum / law - 1) < 1e-12);
        }
}

// k = n: with two workers the losses are the ring's, digit for digit.
static void all_entries_give_the_rings_losses(void **state)
{
    (void)state;
    struct job j;
    job_run(&j, 60,
            "lockstep train %s workers=2 steps=8 sync=ring save=8 out=ring && "
            "lockstep train %s workers=2 steps=8 sync=ring squeeze=topk "
            "density=1 feedback=0 save=8 out=all",
            tiny, tiny);
    assert_ok(&j);
    assert_same_files("ring", "all", 8);
    job_run(&j, 60,
            "lockstep train %s workers=2 steps=8 sync=zero squeeze=topk "
            "density=1 feedback=0 save=8 out=parts && "
            "lockstep train %s workers=2 steps=8 sync=zero squeeze=topk "
            "density=1 feedback=0 shard=3 save=8 out=blocks",
            tiny, tiny);
    assert_ok(&j);
    assert_same_files("ring", "parts", 8);
    assert_same_files("ring", "blocks", 8);
}

// Until the freeze, workers have the parameters of those that do not compress.
static void the_first_steps_are_adamws(void **state)
{
    (void)state;
    struct job j;
    job_run(&j, 60,
            "lockstep train %s workers=3 steps=8 sync=ring save=4 out=whole && "
            "lockstep train %s workers=3 steps=8 sync=ring save=4 squeeze=sign "
            "freeze=4 out=frozen; for k in 4 8; do f=checkpoint-$k/model."
            "safetensors; cmp -s whole/$f frozen/$f && echo same $k; done",
            tiny, tiny);
    assert_prints(&j, "same 4");
    assert_prints(&j, "freeze=4: AdamW's second moment is complete after some "
                      "3 / (1 - beta2) = 60 steps");
    assert_null(strstr(j.out, "same 8"));
}

// A checkpoint with residuals is resumed by other compressors, by whole
// gradients, and in other worlds.
static void other_ways_resume_it(void **state)
{
    (void)state;
    static const char *const tour[] = {
        "sync=ring squeeze=topk density=0.02 workers=2",
        "sync=ring squeeze=power workers=2",
        "sync=ring squeeze=sign workers=3",
        "sync=ring squeeze=sign freeze=1 workers=2",
        "sync=dps squeeze=sign freeze=14 workers=3",
        "sync=dps squeeze=int8 workers=3",
        "sync=dps workers=2",
        "sync=allreduce squeeze=int8 workers=2",
        "sync=zero squeeze=sign workers=3",
        "sync=ring squeeze=sign workers=3",
        "mesh=tp2", // does not compress
        "sync=zero mesh= squeeze=topk workers=2",
        "sync=zero shard=3", // neither do these two
        "sync=ring squeeze=sign freeze=1",
        "sync=zero",
        "sync=ring squeeze=int8",
        "wire=bf16", // nor does this
        "sync=ring wire=fp32 workers=2",
        "sync=ring squeeze=topk workers=1",
    };
    enum { STOPS = sizeof tour / sizeof *tour };
    struct job j;
    for (int i = 0; i < STOPS; i++) {
        job_run(&j, 60,
                "lockstep train %s %s save=3 resume=auto schedule=constant "
                "steps=%d out=tour",
                tiny, tour[i], 3 * (i + 1));
        assert_ok(&j);
    }
    assert_true(job_summary("tour", "steps") == 3 * STOPS);
    job_run(&j, 20,
            "strings -n 4 tour/checkpoint-57/optimizer.safetensors | head -1");
    assert_prints(&j, "\"slots\":\"exp_avg exp_avg_sq residual_of_worker_0\"");
}

// A checkpoint with the workers' velocities has no momentum of the optimiser.
// verify and other ways can read it, and begin with a momentum of 0.
static void velocities_can_be_left_behind(void **state)
{
    (void)state;
    struct job j;
    job_run(&j, 100,
            "lockstep train %s sync=ring squeeze=topk optimizer=sgd lr=0.1 "
            "momentum_correction=1 workers=2 steps=4 save=4 eval=4 out=dgc && "
            "lockstep verify dgc && lockstep train %s sync=dps optimizer=sgd "
            "workers=2 steps=8 save=8 lr=0.1 resume=dgc/checkpoint-4 out=plain",
            tiny, tiny);
    assert_ok(&j);
    assert_true(job_summary("plain", "steps") == 8);
    job_run(&j, 100,
            "lockstep train %s sync=ring squeeze=demo optimizer=sgd lr=0.001 "
            "workers=2 steps=4 save=4 out=demo && lockstep verify demo && "
            "lockstep train %s sync=ring squeeze=none optimizer=sgd workers=3 "
            "steps=8 save=8 lr=0.1 resume=demo/checkpoint-4 out=after && "
            "lockstep train %s sync=ring squeeze=demo optimizer=sgd workers=3 "
            "steps=8 save=8 lr=0.001 resume=demo/checkpoint-4 out=three",
            tiny, tiny, tiny);
    assert_ok(&j);
    assert_true(job_summary("after", "steps") == 8);
    job_run(&j, 20,
            "strings -n 4 three/checkpoint-8/optimizer.safetensors | head -1");
    assert_prints(&j, "\"slots\":\"residual_of_worker_0 "
                      "residual_of_worker_1 residual_of_worker_2\"");
    job_run(&j, 60,
            "lockstep train %s sync=ring squeeze=sign optimizer=adamw freeze=2 "
            "momentum=0.9 workers=2 steps=8 resume=demo/checkpoint-4 out=no",
            tiny);
    assert_status(&j, 1);
    assert_prints(&j, "has no exp_avg, and with freeze=2 AdamW has ended in "
                      "step 2; try: a larger freeze=");
}

// A NaN ends the job on all workers; a gradient that overflows is skipped.
static void a_nan_ends_the_job(void **state)
{
    (void)state;
    struct job j;
    job_run(&j, 60,
            "lockstep train %s sync=ring squeeze=sign workers=2 steps=8 "
            "inject=nan:3@1",
            tiny);
    assert_status(&j, 1);
    assert_prints(&j, "step 3: the gradient of");
    job_run(&j, 60,
            "lockstep train %s sync=ring squeeze=topk workers=2 steps=8 "
            "precision=fp16 loss_scale=512 inject=inf:3@1 out=inf",
            tiny);
    assert_ok(&j);
    assert_prints(&j, "step 3: the gradient overflows at loss scale 512");
    assert_true(job_summary("inf", "steps") == 8);
}

// The time of compressing is recorded, and is a part of what steps.csv says of
// the exchange.
static void compressing_is_recorded(void **state)
{
    (void)state;
    struct job j;
    double ready[MAX], sync[MAX], columns = 0, spans = 0;
    job_run(&j, 60,
            "lockstep train %s channels=256 sync=ring squeeze=topk workers=2 "
            "steps=8 out=spans && grep compress spans/breakdown.csv && grep -c "
            "'\"compress\"' spans/trace.json",
            tiny);
    assert_ok(&j);
    assert_prints(&j, "0,compress,");
    assert_int_equal(job_column("spans", "t_ready_us", 0, ready, MAX), 8);
    assert_int_equal(job_column("spans", "t_sync_us", 0, sync, MAX), 8);
    for (int k = 0; k < 8; k++)
        columns += (ready[k] + sync[k]) * 1e-6;
    job_run(&j, 20,
            "LC_ALL=C awk -F, '/^0,(exposed|wait|compress|update),/ {s += $3} "
            "END {print s}' spans/breakdown.csv");
    spans = atof(j.out);
    assert_true(spans > 0 && fabs(columns / spans - 1) < 0.01);
}

static void impossible_settings_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *words, *says;
    } bad[] = {
        {"density=0.1", "density=0.1 is a setting of squeeze=topk, demo; try: "
                        "squeeze=topk, or leave it out"},
        {"squeeze=sign density=0.1",
         "density=0.1 is a setting of squeeze=topk, demo; "
         "try: leave it out"},
        {"squeeze=topk levels=4", "levels=4 is a setting of squeeze=int8"},
        {"squeeze=int8 scope=model",
         "scope=model is a setting of squeeze=topk, "
         "sign"},
        {"feedback=0", "feedback=0 is a setting of squeeze="},
        {"squeeze=topk wire=fp16", "wire=fp16: squeeze=topk decides how "
                                   "gradients travel; try: wire=fp32"},
        {"squeeze=topk own_norm=1", "try: own_norm=0"},
        {"squeeze=topk sync=allreduce algorithm=ring",
         "algorithm=ring is for sums of whole"},
        {"squeeze=int8 levels=4", "try: levels=12, or feedback=0"},
        {"squeeze=sign precision=fp16", "try: loss_scale=1024"},
        {"squeeze=sign save=4 save_async=1 out=no", "try: save_async=0"},
        {"squeeze=topk mesh=dp1,pp2", "try: a mesh of replicas only"},
        {"squeeze=topk squeeze_after=8", "try: squeeze_after=0"},
        {"squeeze=topk sync=zero shard=2",
         "shard=2: feedback=1 keeps residuals as long as the gradients on each "
         "worker, which is more than shard=2 saves; try: feedback=0, or "
         "shard=1"},
        {"squeeze=int8 sync=zero wire=fp16", "try: wire=fp32"},
        {"squeeze=int8 sync=zero mesh=dp1,pp2", "a mesh of replicas only"},
        {"squeeze=sign sync=zero scope=model", "zero has no such setting"},
        {"squeeze=power sync=zero", "updates with a part of it; try: "
                                    "sync=ring"},
        {"squeeze=demo optimizer=sgd sync=zero", "no state of the optimiser"},
        {"squeeze=topk sync=dps scope=model", "dps has no such setting"},
        {"squeeze=power sync=dps", "a server adds once; try: sync=ring"},
        {"squeeze=topk sync=sps update=server", "try: update=worker"},
        {"squeeze=topk sync=sps consistency=asp", "try: update=worker"},
        {"squeeze=sign sync=dps elastic=1 save=4 out=no", "elastic=0"},
        {"squeeze=topk momentum_correction=1", "try: optimizer=sgd"},
        {"squeeze=sign momentum_correction=1", "a setting of squeeze=topk"},
        {"squeeze=topk momentum_correction=1 optimizer=sgd feedback=0",
         "try: feedback=1"},
        {"squeeze=topk squeeze_rank=2", "squeeze_rank=2 is a setting of "
                                        "squeeze=power"},
        {"squeeze=power scope=model",
         "scope=model is a setting of squeeze=topk"},
        {"squeeze=demo", "try: optimizer=sgd with momentum=0.999"},
        {"squeeze=demo optimizer=sgd clip=1", "which have no length to clip"},
        {"squeeze=demo optimizer=sgd feedback=0",
         "feedback=0 is a setting of squeeze=topk, int8, sign, power; try: "
         "leave it out"},
        {"squeeze=demo optimizer=sgd squeeze_after=2",
         "squeeze_after=2 is a setting of squeeze=topk, int8"},
        {"squeeze=demo optimizer=sgd scope=model",
         "scope=model is a setting of"},
        {"squeeze=demo optimizer=sgd wire=bf16", "try: wire=fp32"},
        {"squeeze=demo optimizer=sgd precision=fp16",
         "squeeze=demo keeps parts of gradients from step to step, and the "
         "dynamic loss scale of precision=fp16 changes their unit; try: "
         "loss_scale=1024, or precision=bf16"},
        {"squeeze=demo optimizer=sgd save=4 save_async=1 out=no",
         "every worker has its own; try: save_async=0"},
        {"squeeze=demo optimizer=sgd offload=disk out=no",
         "optimizer=sgd without momentum has no state"},
        {"squeeze=demo optimizer=sgd mesh=dp1,pp2",
         "try: a mesh of replicas only"},
        {"squeeze=demo optimizer=sgd sync=sps", "a server adds; try: "
                                                "sync=ring"},
        {"freeze=2",
         "freeze=2 is a setting of squeeze=sign; try: squeeze=sign, "
         "or leave it out"},
        {"squeeze=topk freeze=2", "freeze=2 is a setting of squeeze=sign; try: "
                                  "leave it out"},
        {"squeeze=sign freeze=2 optimizer=sgd", "try: optimizer=adamw"},
        {"squeeze=sign freeze=2 squeeze_after=2",
         "squeeze_after=2: with freeze=2 gradients travel whole in the first 2 "
         "steps; try: leave it out"},
        {"squeeze=sign freeze=8",
         "freeze=8: of steps=8 none would be compressed; try: freeze=2"},
        {"squeeze=sign freeze=2 feedback=0 precision=fp16",
         "freeze=2 adds a moment to gradients, and the dynamic loss scale of "
         "precision=fp16 changes their unit; try: loss_scale=1024"},
        {"squeeze=sign freeze=2 offload=disk out=no", "try: offload=none"},
        {"squeeze=sign freeze=2 device=cuda", "try: device=cpu"},
        {"squeeze=onebit_adam", "squeeze=sign optimizer=adamw freeze=100"},
        {"squeeze=powersgd", "squeeze=power"},
        {"squeeze=randomk", "see docs/limits.md"},
        {"squeeze=qsgd", "squeeze=int8"},
        {"squeeze=topk density=0", "density=0"},
    };
    struct job j;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        job_run(&j, 60, "lockstep train %s sync=ring workers=2 steps=8 %s",
                tiny, bad[i].words);
        assert_status(&j, 1);
        assert_prints(&j, bad[i].says);
    }
    assert_false(job_has("no"));
}

// predict knows the bytes: 1 % of 8 bytes to each of 3 others.
static void predict_knows_the_bytes(void **state)
{
    (void)state;
    struct job j;
    job_run(&j, 60,
            "lockstep predict model=gpt2 workers=4 link=1gbit compute_ms=900 "
            "squeeze=topk density=0.01");
    assert_ok(&j);
    assert_prints(&j, "ring           29.87 MB");
    assert_prints(&j, "compressed by squeeze=topk");
    // a host sends 3/4 of a message, and 3/4 of an answer of four
    assert_prints(&j, "dps            37.37 MB");
    assert_prints(&j, "zero           381.3 MB"); // 373.3 are parameters
    job_run(&j, 60,
            "lockstep predict model=gpt2 workers=4 link=1gbit compute_ms=900 "
            "squeeze=power squeeze_rank=4");
    assert_ok(&j);
    assert_prints(&j, "ring           5.535 MB");
    assert_null(strstr(j.out, "zero"));
    job_run(&j, 60,
            "lockstep predict model=gpt2 workers=4 link=1gbit compute_ms=900 "
            "squeeze=demo density=0.0078125 optimizer=sgd");
    assert_ok(&j);
    assert_prints(&j, "ring           16.11 MB");
    assert_null(strstr(j.out, "dps"));
    job_run(
        &j, 60,
        "lockstep predict model=gpt2 hosts=4 slots=1 link=1gbit compute_ms=900 "
        "squeeze=power");
    assert_ok(&j);
    assert_prints(&j, " 5.535 ");
    assert_prints(&j, "1 of 1 ways fit. The fastest: mesh=dp4 sync=ring");
    job_run(&j, 60,
            "lockstep predict model=gpt2 mesh=dp2,pp2 link=1gbit "
            "compute_ms=900 squeeze=topk");
    assert_status(&j, 1);
    assert_prints(&j, "try: a mesh of replicas only");
    assert_null(strstr(j.out, "dps"));
    job_run(&j, 60,
            "lockstep predict model=gpt2 workers=4 link=1gbit compute_ms=900 "
            "squeeze=topk sync=ring,zero shard=2");
    assert_status(&j, 1);
    assert_prints(&j, "sync=zero shard=2 compresses gradients only without "
                      "residuals; try: feedback=0, or shard=1");
    job_run(&j, 60,
            "lockstep predict model=gpt2 workers=4 link=1gbit compute_ms=900 "
            "squeeze=int8 feedback=0 sync=zero shard=2 accum=2");
    assert_ok(&j);
    assert_prints(&j, "zero           566.4 MB"); // 373.3 are parameters
    job_run(&j, 60,
            "lockstep predict model=gpt2 workers=4 link=1gbit compute_ms=900 "
            "squeeze=power sync=dps");
    assert_status(&j, 1);
    assert_prints(&j, "sync=dps cannot compress gradients by squeeze=power");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(disturbed_jobs_end_with_the_same_files),
        cmocka_unit_test(bytes_are_those_of_the_law),
        cmocka_unit_test(all_entries_give_the_rings_losses),
        cmocka_unit_test(the_first_steps_are_adamws),
        cmocka_unit_test(other_ways_resume_it),
        cmocka_unit_test(velocities_can_be_left_behind),
        cmocka_unit_test(a_nan_ends_the_job),
        cmocka_unit_test(compressing_is_recorded),
        cmocka_unit_test(impossible_settings_are_refused),
        cmocka_unit_test(predict_knows_the_bytes),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, job_text, job_cleanup);
}
