// test_cuda_jobs.c - whole jobs with device=cuda, on the emulated GPU. Every
// backend has the same losses as with device=cpu. Vectors go through host
// memory, or in a build with NCCL from GPU to GPU.

#include "base/base.h"
#include "tests/job_asserts.h"

#include <math.h>

#include "tests/test.h"

// Two verifications of every=2 fit into STEPS. A step of an emulated GPU takes
// a hundred times as long as one of the CPU.
enum { MAX = 50, STEPS = 4, SAVED = 3 };

static const char small[] =
    "data=text.txt model=nano layers=1 channels=32 heads=2 context=32 batch=2 "
    "eval=0 log=0 warmup=0 lr=1e-3 timeout=60 threads=1 trace=off";

static bool by_host; // an exchange of the last run() was in host memory

static void run(const char *device, const char *words)
{
    struct job j = {0};
    job_run(&j, 200, "lockstep train %s steps=%d device=%s %s out=%s", small,
            STEPS, device, words, device);
    if (j.status)
        print_message("%s\n", j.out);
    assert_int_equal(j.status, 0);
    by_host = strstr(j.out, ": exchanges go through host memory");
}

static void same_column(const char *words, const char *name, int rank)
{
    double cpu[MAX], cuda[MAX];
    assert_int_equal(job_column("cpu", name, rank, cpu, MAX), STEPS);
    assert_int_equal(job_column("cuda", name, rank, cuda, MAX), STEPS);
    for (int i = 0; i < STEPS; i++) {
        bool same = fabs(cpu[i] - cuda[i]) <= 1e-3;
        if (!same)
            print_message("%s, rank %d, step %d: %s %g, on the CPU %g\n", words,
                          rank, i + 1, name, cuda[i], cpu[i]);
        assert_true(same);
    }
}

// In the last step the workers send what the law says, in the mean.
static void sends_the_law(const char *words, const char *column, int workers)
{
    double sent[MAX], all = 0, law = job_law("cuda", column);
    for (int r = 0; r < workers; r++) {
        assert_int_equal(job_column("cuda", column, r, sent, MAX), STEPS);
        all += sent[STEPS - 1] / workers;
    }
    if (!(fabs(all - law) < 1e-3))
        print_message("%s: %s %g, the law: %g\n", words, column, all, law);
    assert_true(fabs(all - law) < 1e-3);
}

// Losses and norms in fp32 differ by at most 1e-3 from the CPU's, as in the
// model's test. The bytes of `column`, unless it is NULL, are the law's.
static void same_losses_and_bytes(const char *words, const char *column,
                                  int workers)
{
    run("cpu", words);
    run("cuda", words);
    for (int r = 0; r < workers; r++) {
        same_column(words, "loss", r);
        same_column(words, "grad_norm", r);
    }
    if (column)
        sends_the_law(words, column, workers);
    struct job j = {0};
    job_run(&j, 20, "rm -r cpu cuda");
}

static void same_losses(const char *words, int workers)
{
    same_losses_and_bytes(words, NULL, workers);
}

static void bytes_are_the_laws(const char *words)
{
    struct job j = {0};
    run("cuda", words);
    sends_the_law(words, "bytes_tx", 2);
    job_run(&j, 20, "rm -r cuda");
}

static void alone(void **state)
{
    (void)state;
    same_losses("sync=local workers=1 accum=2 bucket_mb=0.05", 1);
}

static void servers(void **state)
{
    (void)state;
    same_losses("sync=sps workers=2 bucket_mb=0.05", 2);
    same_losses("sync=dps workers=2 bucket_mb=0.05", 2);
}

static void collectives(void **state)
{
    (void)state;
    same_losses("sync=allreduce workers=2 bucket_mb=0.05", 2);
    same_losses("sync=ring workers=2 bucket_mb=0.05", 2);
    same_losses("sync=zero workers=2 bucket_mb=0.05 offload=disk", 2);
    same_losses("sync=outer every=2 verify=2 workers=2", 2);
}

// Blocks that a strategy lends in host memory go up to the GPU and come down.
static void shards(void **state)
{
    (void)state;
    same_losses("sync=zero shard=2 workers=2 layers=2 accum=2 dropout=0.1 "
                "verify=2",
                2);
    same_losses("sync=zero shard=3 workers=2 layers=2 accum=2 recompute=1 "
                "verify=2",
                2);
    bytes_are_the_laws("sync=zero workers=2 transport=tcp precision=bf16");
    bytes_are_the_laws("sync=zero shard=2 workers=2 transport=tcp "
                       "precision=bf16");
    bytes_are_the_laws("sync=zero shard=3 workers=2 transport=tcp "
                       "precision=bf16");
    if (!test_long())
        return;
    same_losses("sync=zero shard=3 workers=3 layers=3 overlap=0 clip=0.1", 3);
    same_losses("sync=zero shard=3 workers=2 layers=1 tune=2 transport=tcp", 2);
    same_losses("sync=zero shard=2 workers=4 layers=3 wire=bf16", 4);
}

struct mesh_case {
    const char *words;
    int workers;
};

// All cases, or without --long those that have something of every one.
static void same_meshes(const struct mesh_case *cases, int n, int quick,
                        const char *column)
{
    for (int i = 0; i < (test_long() ? n : quick); i++)
        same_losses_and_bytes(cases[i].words, column, cases[i].workers);
}

// Each stage is a model on a GPU of its own; what travels goes through host
// memory.
static void stages(void **state)
{
    (void)state;
    static const struct mesh_case cases[] = {
        {"mesh=pp2 layers=4 chunks=2 accum=2 dropout=0.1 recompute=1 clip=0.1",
         2},
        {"sync=ring mesh=dp2,pp2 layers=2 accum=2 verify=2", 4},
        {"mesh=pp2 layers=2 accum=3", 2},
        {"mesh=pp3 layers=3 accum=2 pipeline=gpipe clip=0.1", 3},
        {"sync=zero mesh=dp2,pp2 layers=2 accum=2", 4},
    };
    same_meshes(cases, sizeof cases / sizeof *cases, 2, "stage_tx");
}

// So is each slice; sums over slices go through host memory, too.
static void slices(void **state)
{
    (void)state;
    static const struct mesh_case cases[] = {
        {"mesh=tp2 heads=4 dropout=0.1 recompute=1 layers=2 accum=2 clip=0.1",
         2},
        {"mesh=tp3 heads=4 channels=96 vocab_size=257 verify=3 tp_sequence=1 "
         "precision=fp32 dropout=0.1",
         3},
        {"mesh=tp2 layers=2 heads=4 clip=0.1", 2},
        {"sync=ring mesh=dp2,tp2 heads=4 verify=2", 4},
        {"mesh=pp2,tp2 layers=4 heads=4 accum=3 recompute=1", 4},
    };
    same_meshes(cases, sizeof cases / sizeof *cases, 2, "slice_tx");
}

// Workers that divide sequences have the tokens and the masks of the CPU's.
static void pieces(void **state)
{
    (void)state;
    static const struct mesh_case cases[] = {
        {"mesh=cp3 attention_over=ring context=31 layers=2 dropout=0.1 "
         "recompute=1",
         3},
        {"mesh=cp2 attention_over=heads heads=3 channels=24 dropout=0.1", 2},
        {"sync=ring mesh=dp2,cp2 attention_over=gather context=17 accum=2 "
         "dropout=0.1 verify=2",
         4},
        {"mesh=cp2,up2 attention_over=ring context=31 dropout=0.1 recompute=1",
         4},
        {"mesh=cp2 attention_over=ring", 2},
        {"mesh=cp3 attention_over=gather context=5 batch=3", 3},
        {"mesh=cp3 attention_over=heads heads=4 context=31 layers=2 "
         "recompute=1 transport=tcp",
         3},
        {"mesh=cp2,up2 attention_over=gather transport=tcp dropout=0.1", 4},
        {"mesh=cp2,tp2 attention_over=ring heads=4 tp_sequence=1 dropout=0.1",
         4},
        {"sync=zero mesh=dp2,cp2 attention_over=heads", 4},
        {"mesh=pp2,cp2 attention_over=gather layers=2 accum=2 recompute=1", 4},
    };
    same_meshes(cases, sizeof cases / sizeof *cases, 4, "piece_tx");
    if (test_long())
        same_losses("mesh=cp2 attention_over=ring precision=fp16", 2);
}

// Products are timed when there are other workers to exchange with.
static void parts_time_their_products(void **state)
{
    (void)state;
    static const char *const meshes[] = {"mesh=tp2 tune=2", "mesh=cp2 tune=2"};
    for (int i = 0; i < 2; i++) {
        struct job j = {0};
        run("cuda", meshes[i]);
        job_run(&j, 20, "rm -r cuda");
    }
}

// A stage's checkpoint is the whole model's: another mesh on another device
// goes on with the same losses.
static void a_checkpoint_changes_device_and_mesh(void **state)
{
    (void)state;
    struct job j = {0};
    double one[MAX], other[MAX];
    job_run(&j, 200,
            "lockstep train %s steps=6 device=cuda mesh=pp2 layers=2 accum=2 "
            "save=3 out=cuda && "
            "lockstep train resume=cuda/checkpoint-3 device=cpu mesh= "
            "sync=local workers=1 out=cpu && "
            "lockstep train resume=cpu/checkpoint-6 steps=9 device=cuda "
            "mesh=pp2 out=back",
            small);
    if (j.status)
        print_message("%s\n", j.out);
    assert_int_equal(j.status, 0);
    assert_int_equal(job_column("cuda", "loss", 0, one, MAX), 2 * SAVED);
    assert_int_equal(job_column("cpu", "loss", 0, other, MAX), SAVED);
    for (int i = 0; i < SAVED; i++)
        assert_true(fabs(one[SAVED + i] - other[i]) <= 1e-3);
    assert_int_equal(job_column("back", "loss", 0, other, MAX), SAVED);
    job_run(&j, 20, "rm -r cuda cpu back");
}

// A worker alone has one vector in host memory; others also have copies of the
// gradients and parameters that they exchange.
static void host_copies_are_in_the_forecast(void **state)
{
    (void)state;
    enum { WORDS = 4096, CHANNELS = 32 };
    for (int workers = 1; workers <= 2; workers++) {
        double bytes[2];
        struct job j = {0};
        for (int i = 0; i < 2; i++) {
            job_run(&j, 200,
                    "lockstep train %s device=cuda steps=1 %s vocab_size=%d "
                    "out=cuda",
                    small,
                    workers == 1 ? "sync=local workers=1"
                                 : "sync=ring transport=tcp workers=2",
                    256 + i * WORDS);
            if (j.status)
                print_message("%s\n", j.out);
            assert_int_equal(j.status, 0);
            bytes[i] = job_summary("cuda", "predicted_memory_bytes");
            job_run(&j, 20, "rm -r cuda");
        }
        double vectors = (bytes[1] - bytes[0]) / (4.0 * WORDS * CHANNELS);
        assert_true(fabs(vectors - (workers == 1 ? 1 : 3)) < 0.1);
    }
}

static long profiled(const char *steps)
{
    struct job j = {0};
    job_run(&j, 200,
            "lockstep train %s steps=6 device=cuda sync=local workers=1 "
            "profile=%s out=cuda > said 2>&1 && cat cuda/log.txt",
            small, steps);
    const char *said = strstr(j.out, "emulated CUDA: ");
    long kernels = said ? strtol(said + 15, NULL, 10) : -1;
    assert_int_equal(j.status, 0);
    assert_true(!said || !strstr(said + 1, "emulated CUDA: ")); // stops once
    struct job after = {0};
    job_run(&after, 20, "rm -r cuda said");
    return kernels;
}

// The profile has the kernels of whole steps, and no others.
static void some_steps_are_profiled(void **state)
{
    (void)state;
    long one = profiled("2:1");
    assert_true(one > 20);
    assert_int_equal(profiled("2:3"), 3 * one);
    assert_int_equal(profiled("5:9"), 2 * one); // the last two of six
    assert_int_equal(profiled("7:1"), -1);
    // Algorithms are timed before the first step: timing would more than
    // triple its kernels. The number is not always the same, since a fused
    // algorithm has one kernel less, and the faster one is chosen.
    assert_in_range(profiled("1:1 tune=2"), one / 2, 2 * one);
}

static long count_in(const char *file, const char *word)
{
    struct job j = {0};
    job_run(&j, 20, "grep -c '%s' %s", word, file);
    return strtol(j.out, NULL, 10);
}

// Kernels are in trace.json and in HTA's file. The emulated GPU tells a fake
// libcupti which kernels it runs. The job has two steps, with one embed_kernel
// each.
static void kernels_are_in_the_trace(void **state)
{
    (void)state;
    struct job j = {0};
    job_run(&j, 200,
            "LD_LIBRARY_PATH='" FAKE_LIBRARIES
            "' lockstep train %s device=cuda "
            "sync=local workers=1 steps=2 trace=hta kernels=1 out=cuda",
            small);
    if (j.status)
        print_message("%s\n", j.out);
    assert_int_equal(j.status, 0);
    assert_int_equal(count_in("cuda/trace.json",
                              "\"embed_kernel\", \"cat\": \"kernel\""),
                     2);
    assert_int_equal(count_in("cuda/hta/rank-0.json", "\"embed_kernel\""), 2);
    assert_true(count_in("cuda/trace.json", "\"GPU stream ") > 0);
    assert_true(count_in("cuda/trace.json", "\"gpu_memcpy\"") >= 2);
    struct job after = {0};
    job_run(&after, 20, "rm -r cuda");
}

// With a GPU for each worker and NCCL, here a fake one, exchanges of replicas,
// slices and pieces of sequences do not go through host memory. The alignment
// of slices of unequal length is an exchange, too.
static void between_gpus(void **state)
{
    (void)state;
    static const struct mesh_case cases[] = {
        {"sync=ring mesh=dp2,tp2 heads=4 layers=2 accum=2 recompute=1 clip=0.1 "
         "dropout=0.1 verify=2 bucket_mb=0.02",
         4},
        {"mesh=tp3 heads=4 channels=96 vocab_size=257 tp_sequence=1 "
         "dropout=0.1 precision=fp32 verify=3",
         3},
        {"sync=ring mesh=dp2,tp2 wire=fp16 heads=3 channels=48 verify=2", 4},
        {"mesh=cp2,up2 attention_over=gather context=31 dropout=0.1", 4},
        {"mesh=tp2 heads=4 layers=2 tp_wire=bf16", 2},
        {"mesh=pp2,tp2 layers=2 heads=4 accum=2", 4},
        {"mesh=cp3 attention_over=gather layers=2 recompute=1", 3},
    };
    assert_int_equal(setenv("EMULATED_CUDA_DEVICES", "4", 1), 0);
    assert_int_equal(setenv("FAKE_NCCL", "nccl", 1), 0);
    for (int i = 0; i < (test_long() ? 7 : 4); i++) {
        bool pieces = strstr(cases[i].words, "cp");
        same_losses_and_bytes(cases[i].words, pieces ? "piece_tx" : "slice_tx",
                              cases[i].workers);
        assert_false(by_host);
    }
    struct job j = {0};
    job_run(&j, 20, "rm nccl");
    assert_int_equal(unsetenv("EMULATED_CUDA_DEVICES"), 0);
    run("cuda", "mesh=tp2 heads=4"); // the two share a GPU
    assert_true(by_host);
    job_run(&j, 20, "rm -r cuda");
}

static void no_gpu(void **state)
{
    (void)state;
    struct job j = {0};
    job_run(&j, 60,
            "EMULATED_CUDA_DEVICES=0 lockstep train %s device=cuda sync=local "
            "workers=1 out=none",
            small);
    assert_int_not_equal(j.status, 0);
    assert_non_null(strstr(j.out, "try: device=cpu"));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alone),
        cmocka_unit_test(servers),
        cmocka_unit_test(collectives),
        cmocka_unit_test(shards),
        cmocka_unit_test(stages),
        cmocka_unit_test(slices),
        cmocka_unit_test(pieces),
        cmocka_unit_test(parts_time_their_products),
        cmocka_unit_test(a_checkpoint_changes_device_and_mesh),
        cmocka_unit_test(host_copies_are_in_the_forecast),
        cmocka_unit_test(some_steps_are_profiled),
        cmocka_unit_test(kernels_are_in_the_trace),
        cmocka_unit_test(no_gpu),
    };
    const struct CMUnitTest nccl[] = {cmocka_unit_test(between_gpus)};
    if (argc > 1 && !strcmp(argv[1], "between_gpus"))
        return cmocka_run_group_tests(nccl, job_text, job_cleanup);
    return cmocka_run_group_tests(tests, job_text, job_cleanup);
}
