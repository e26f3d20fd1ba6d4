// test_memory.c - compares the memory of a worker of each backend (VmHWM, the
// peak that the system counts) with the prediction. A run with plain SGD has
// only two vectors, parameters and gradients. What it takes beyond these is the
// memory of activations and of the process. Their measured size is subtracted
// from all measurements, and their predicted size from all predictions.

#include "base/base.h"
#include "tests/job.h"
#include "tests/test.h"

#include <math.h>
#include <string.h>

// 12.7 M parameters, so that a vector is 51 MB, and few activations.
enum { VECTOR = 4 * 12748288 };
enum { MIB = 1 << 20 };

static const char heavy[] =
    "data=text.txt layers=4 channels=512 heads=8 context=16 vocab_size=256 "
    "batch=1 threads=1 steps=2 warmup=0 eval=0 log=0";

struct peak {
    double measured, predicted;
};

static struct peak run_of(const char *model, const char *words)
{
    struct job j;
    struct peak p;
    job_run(&j, 120, "rm -rf out; lockstep train %s out=%s/out %s", model,
            job_dir(), words);
    if (j.status)
        print_message("%s: %s\n", words, j.out);
    assert_int_equal(j.status, 0);
    p.measured = job_summary("out", "peak_memory_bytes");
    p.predicted = job_summary("out", "predicted_memory_bytes");
    return p;
}

static struct peak run(const char *words)
{
    return run_of(heavy, words);
}

static void workers_take_the_predicted_memory(void **state)
{
    (void)state;
    static const struct {
        const char *words;
        double at_most; // vectors that are predicted but not always taken
        double waiting; // vectors that are not predicted: while the machine
                        // is busy, up to 64 slices wait in the queue that
                        // ZeroMQ has in a server
    } ways[] = {
        {"sync=local", 0, 0},
        {"sync=local staging=always", 0, 0},
        {"sync=local save=1 save_async=1", 0, 0},
        {"sync=ring workers=2 transport=tcp", 0, 0},
        {"sync=ring workers=2 transport=shm", 0, 0},
        {"sync=ring workers=2 transport=tcp wire=bf16", 0, 0},
        {"sync=ring workers=2 transport=tcp staging=always", 0, 0},
        {"sync=allreduce workers=2", 0.5, 0}, // buffers of messages under way
        {"sync=zero workers=4 transport=tcp", 0, 0},
        {"sync=zero workers=2 transport=shm", 0, 0},
        {"sync=zero shard=2 workers=4 transport=tcp", 0, 0},
        {"sync=zero shard=3 workers=4 transport=tcp", 0, 0},
        {"sync=zero shard=3 workers=2 transport=shm", 0, 0},
        {"sync=local offload=disk", 0, 0},
        {"sync=zero workers=2 transport=tcp offload=disk", 0, 0},
        {"sync=zero shard=3 workers=2 transport=tcp offload=disk", 0, 0},
        {"sync=zero workers=2 transport=tcp squeeze=int8", 0, 0},
        {"sync=zero shard=2 workers=4 transport=tcp squeeze=int8 feedback=0", 0,
         0},
        {"sync=outer workers=2 transport=tcp every=1", 0, 0},
        {"sync=outer workers=2 transport=shm every=1 "
         "outer_lr=0.7 outer_momentum=0.9",
         0, 0},
        // Worker 0 is measured. Here the others take less.
        {"sync=dataparallel workers=2 transport=tcp", 0, 0},
        {"sync=dataparallel workers=4 transport=shm", 0, 0},
        {"sync=sps workers=2", 0, 0.25},
        {"sync=dps workers=2", 0.05, 0.25}, // on one busy core
        {"sync=dps workers=2 update=worker", 0, 0.25},
        {"sync=sps workers=2 save=1", 0.35, 0.25},
        {"sync=dps workers=2 servers=2 save=1", 0.7, 0.25},
        {"sync=dps workers=2 update=worker save=1", 0, 0.25},
    };
    if (TEST_SANITIZED) // a sanitizer's own memory is not in the formula
        skip();
    struct peak model = run("sync=local optimizer=sgd momentum=0");
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct peak p = run(ways[i].words);
        double got = p.measured - (model.measured - 2 * VECTOR);
        double want = p.predicted - (model.predicted - 2 * VECTOR);
        double least = want - ways[i].at_most * VECTOR;
        double most = want + ways[i].waiting * VECTOR;
        bool right = got <= 1.05 * most && got >= 0.95 * least;
        print_message("%-48s %6.1f MB, predicted %6.1f: %.3f%s\n",
                      ways[i].words, got * 1e-6, want * 1e-6, got / want,
                      right ? "" : "  WRONG");
        assert_true(right);
    }
}

// Rank 0 of a pipeline writes the checkpoint's header, draws the weights and
// reads the batches. Still it holds no more than its own layers.
static void rank_0_of_a_pipeline_holds_only_its_layers(void **state)
{
    (void)state;
    if (TEST_SANITIZED)
        skip();
    struct peak whole = run("sync=local save=2");
    struct peak part = run("sync=ring mesh=pp2 save=2");
    print_message("rank 0 of two stages: %.1f MB, predicted %.1f; the whole "
                  "model: %.1f\n",
                  part.measured * 1e-6, part.predicted * 1e-6,
                  whole.measured * 1e-6);
    assert_true(part.measured <= 1.05 * part.predicted);
    assert_true(part.measured < whole.measured - 1.5 * VECTOR);
}

// Here activations are most of the memory.
static void workers_of_a_sequence_take_the_predicted_memory(void **state)
{
    (void)state;
    static const char *const ways[] = {
        "mesh=cp2",
        "mesh=cp2 attention_over=ring",
        "mesh=cp2 attention_over=heads",
        "mesh=cp4 attention_over=ring",
        "mesh=cp2,tp2 tp_sequence=1 attention_over=ring",
        "mesh=cp2,up2",
        "mesh=cp2,up2 attention_over=ring"};
    if (TEST_SANITIZED)
        skip();
    // what a process takes without a model's vectors differs by processor
    struct peak base = run("sync=local optimizer=sgd momentum=0");
    double extra = base.measured - base.predicted;
    assert_true(fabs(extra) < 8e6);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        char words[256];
        snprintf(words, sizeof words,
                 "%s layers=2 channels=256 context=2048 batch=6 steps=1 "
                 "transport=tcp",
                 ways[i]);
        struct peak p = run(words);
        double want = p.predicted + extra;
        print_message("%-60s %6.1f MB, predicted %6.1f\n", ways[i],
                      p.measured * 1e-6, want * 1e-6);
        assert_true(fabs(p.measured / want - 1) < 0.05);
    }
}

// What a save takes does not depend on a vector alone: its buffers are as small
// as the model.
static void a_small_model_is_saved_in_little_memory(void **state)
{
    (void)state;
    static const char small[] =
        "data=text.txt model=nano layers=2 channels=8 heads=2 context=8 "
        "batch=1 threads=1 steps=4 warmup=0 eval=0 log=0 save=1";
    static const char *const ways[] = {"sync=local", "sync=sps workers=2"};
    if (TEST_SANITIZED)
        skip();
    for (int i = 0; i < 2; i++) {
        struct peak p = run_of(small, ways[i]);
        print_message("%s: %.1f MiB, predicted %.1f\n", ways[i],
                      p.measured / MIB, p.predicted / MIB);
        assert_true(p.measured <= p.predicted + 4 * MIB);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rank_0_of_a_pipeline_holds_only_its_layers),
        cmocka_unit_test(workers_take_the_predicted_memory),
        cmocka_unit_test(workers_of_a_sequence_take_the_predicted_memory),
        cmocka_unit_test(a_small_model_is_saved_in_little_memory),
    };
    return cmocka_run_group_tests(tests, job_text, job_cleanup);
}
