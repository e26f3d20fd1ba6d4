// test_slice_jobs.c - whole jobs of models in slices. They have the whole
// model's losses and send the bytes that the law says. A job on any mesh
// continues from a checkpoint of any other. An error about a slice that dies or
// stops names the slice's place in the mesh.

#include "base/base.h"
#include "tests/job_asserts.h"

#include <math.h>
#include <stdlib.h>

enum { B = 3, T = 17, C = 35, L = 5, MICRO = 2, STEPS = 4 };

// Odd sizes, numbers of heads and words that no number of slices divides,
// dropout, and clipping of the norm.
static const char same[] =
    "lockstep train data=text.txt model=nano layers=5 heads=5 channels=35 "
    "context=17 vocab_size=257 batch=3 accum=2 threads=1 eval=0 log=0 "
    "warmup=0 timeout=30 dropout=0.1 clip=0.1 schedule=constant trace=off "
    "samples=0";

static void train(const char *words, const char *out)
{
    struct job j;
    job_run(&j, 100, "rm -rf %s; %s %s out=%s", out, same, words, out);
    assert_ok(&j);
}

static double last_loss(const char *out, int rank)
{
    double loss[16];
    int n = job_column(out, "loss", rank, loss, 16);
    assert_true(n > 0);
    return loss[n - 1];
}

static double last_norm(const char *out)
{
    double norm[16];
    int n = job_column(out, "grad_norm", 0, norm, 16);
    assert_true(n > 0);
    return norm[n - 1];
}

// ---- the whole model's numbers, and the law's bytes

// The length of chunk r % slices, if n elements are cut into one chunk for each
// slice.
static int chunk(int n, int slices, int r)
{
    return n / slices + (r % slices < n % slices);
}

// The payload that a slice sends in a step over TCP, in bytes (train/slices.h).
// `rows` is 0, or with tp_sequence= the bytes of a number of the model.
// `keeps`: tp_sequence=2. A number of a join has `wide` bytes.
static double law(int slices, int r, int rows, bool keeps, int wide)
{
    int n = B * T * C, part = 3 * B * T;
    int join = 2 * n - chunk(n, slices, r) - chunk(n, slices, r + 1);
    int loss = slices * part - part, norm = 8 * (slices - 1);
    if (!rows)
        return MICRO * (wide * (4.0 * L + 2) * join + 4.0 * loss) + norm;
    int sums = n - C * chunk(B * T, slices, r);
    int gathers = n - C * chunk(B * T, slices, r + 1);
    int norms = (2 * L + 1) * 2 * C * (slices - 1);
    return MICRO * (wide * (4.0 * L + 2) * sums + 4.0 * (norms + loss) +
                    rows * ((keeps ? 4.0 : 6.0) * L + 2) * gathers) +
           norm;
}

static void check_slices(int slices, const char *words, double within)
{
    char all[256];
    bool keeps = strstr(words, "tp_sequence=2");
    int wide = strstr(words, "tp_wire") ? 2 : 4;
    int rows = !strstr(words, "tp_sequence")     ? 0
               : strstr(words, "precision=bf16") ? 2
                                                 : 4;
    snprintf(all, sizeof all, "sync=ring mesh=tp%d steps=%d verify=1 %s",
             slices, STEPS, words);
    train(all, "slices");
    for (int r = 0; r < slices; r++) {
        double sent[8], came[8];
        assert_int_equal(job_column("slices", "slice_tx", r, sent, 8), STEPS);
        assert_int_equal(job_column("slices", "slice_rx", r, came, 8), STEPS);
        assert_true(sent[STEPS - 1] == law(slices, r, rows, keeps, wide));
        assert_true(came[STEPS - 1] ==
                    law(slices, r + slices - 1, rows, keeps, wide));
        assert_true(last_loss("slices", r) == last_loss("slices", 0));
        assert_true(fabs(last_loss("slices", r) - last_loss("whole", 0)) <
                    within);
    }
    assert_true(fabs(last_norm("slices") - last_norm("whole")) < 10 * within);
}

// The trace has every join and every exchange of the loss, of both slices, with
// numbers that begin again in each step.
static void check_spans(void)
{
    struct job j;
    int each = MICRO * (4 * L + 2 + 1);
    job_run(&j, 30, "grep -c '\"name\": \"join\"' slices/trace.json");
    assert_ok(&j);
    assert_int_equal(atoi(j.out), 2 * STEPS * each);
    job_run(&j, 30, "grep -c '\"join\": %d}' slices/trace.json", each - 1);
    assert_ok(&j);
    assert_int_equal(atoi(j.out), 2 * STEPS);
}

static void slices_train_as_the_whole(void **state)
{
    (void)state;
    train("sync=local steps=4", "whole");
    check_slices(2, "trace=on", 1e-5); // the law is the same in shared memory
    check_spans();
    check_slices(2, "transport=tcp", 1e-5);
    check_slices(3, "transport=tcp", 1e-5);
    check_slices(2, "transport=tcp tp_sequence=1", 1e-5);
    check_slices(3, "transport=tcp tp_sequence=1", 1e-5);
    check_slices(3, "transport=tcp tp_sequence=2", 1e-5);
    check_slices(3, "transport=tcp tp_wire=bf16", 1e-2);
    check_slices(3, "transport=tcp tp_wire=fp16 tp_sequence=2", 2e-3);
    train("sync=local steps=4 precision=bf16", "whole");
    check_slices(2, "precision=bf16", 2e-3);
    check_slices(2, "transport=tcp tp_sequence=1 precision=bf16", 2e-3);
    check_slices(2, "transport=tcp tp_sequence=2 precision=bf16", 2e-3);
}

// In shared memory rows have the same bits as over TCP, also with recompute.
static void rows_have_the_same_bits_everywhere(void **state)
{
    (void)state;
    const char *job = "sync=ring mesh=tp3 tp_sequence=1 steps=4 save=4";
    char words[256];
    train(job, "memory");
    snprintf(words, sizeof words, "%s transport=tcp recompute=1", job);
    train(words, "again");
    assert_same_files("memory", "again", 4);
    // What layers keep is what backward would gather.
    snprintf(words, sizeof words, "%s transport=tcp tp_sequence=2", job);
    train(words, "kept");
    assert_same_files("memory", "kept", 4);
    // Sums that travel in 16 bits are rounded in shared memory, too.
    snprintf(words, sizeof words, "%s tp_wire=bf16", job);
    train(words, "memory");
    snprintf(words, sizeof words, "%s tp_wire=bf16 transport=tcp", job);
    train(words, "tcp");
    assert_same_files("memory", "tcp", 4);
}

// Slices that sleep make the exchanges of training, but for the loss.
static void paced_slices_move_the_same_bytes(void **state)
{
    (void)state;
    for (int rows = 0; rows <= 2; rows++) {
        char words[256];
        snprintf(words, sizeof words,
                 "sync=ring mesh=tp3 transport=tcp steps=2 pace=1,1 "
                 "tp_sequence=%d",
                 rows);
        train(words, "paced");
        for (int r = 0; r < 3; r++) {
            double sent[4], loss = MICRO * 4 * 2 * 3 * B * T;
            assert_int_equal(job_column("paced", "slice_tx", r, sent, 4), 2);
            assert_true(sent[1] ==
                        law(3, r, rows ? 4 : 0, rows == 2, 4) - loss);
        }
    }
}

// ---- with replicas and stages

static void slices_of_replicas_and_stages(void **state)
{
    (void)state;
    static const char *const ways[] = {"sync=ring mesh=dp2,pp2,tp2",
                                       "sync=ring mesh=dp2,tp2",
                                       "sync=zero mesh=dp2,tp2",
                                       "sync=allreduce mesh=dp2,tp2",
                                       "sync=ring mesh=tp2,dp2 transport=tcp"};
    int n = test_long() ? 5 : 3;
    char words[256];
    train("sync=ring mesh=dp2 steps=4 eval=4 eval_batches=2", "whole");
    for (int i = 0; i < n; i++) {
        snprintf(words, sizeof words,
                 "steps=4 save=4 verify=1 eval=4 eval_batches=2 %s", ways[i]);
        const char *out = i == 0 ? "cube" : i == 1 ? "one" : "other";
        train(words, out);
        assert_true(fabs(last_loss(out, 0) - last_loss("whole", 0)) < 1e-5);
        assert_true(fabs(job_summary(out, "final_val_loss") -
                         job_summary("whole", "final_val_loss")) < 1e-5);
        if (i > 1) // the sum of two replicas is the same in either order
            assert_same_files("one", "other", 4);
    }
    struct job j; // two replicas of two micro-batches of B sequences
    job_run(&j, 60, "lockstep report cube >/dev/null && head -2 cube/runs.csv");
    assert_ok(&j);
    assert_prints(&j, ",8,0,12,"); // workers, servers, global_batch
}

// With divided rows, stages pass on the rows of a slice. A run with whole rows
// continues it.
static void rows_of_replicas_and_stages(void **state)
{
    (void)state;
    static const char *const ways[] = {
        "sync=ring mesh=dp2,pp2,tp2 chunks=2 accum=4 batch=1 stages=1,1,2,1",
        "sync=zero mesh=dp2,tp2", "sync=ring mesh=pp2,tp3 pipeline=gpipe"};
    char words[256];
    for (int i = 0; i < 3; i++) {
        struct job j;
        bool last = i == 2;
        train(last     ? "sync=local steps=4 eval=4 eval_batches=2"
              : i == 1 ? "sync=ring mesh=dp2 steps=4 eval=4 eval_batches=2"
                       : "sync=ring mesh=dp2 steps=4 eval=4 eval_batches=2 "
                         "accum=4 batch=1",
              "whole");
        snprintf(words, sizeof words,
                 "steps=2 save=2 verify=1 tp_sequence=1 %s", ways[i]);
        train(words, "rows");
        snprintf(words, sizeof words, "%s", ways[i]);
        job_run(&j, 100,
                "%s %s steps=4 save=4 eval=4 eval_batches=2 resume=auto "
                "verify=1 out=rows %s",
                same, ways[i], last ? "tp_sequence=0" : "");
        assert_ok(&j);
        assert_true(fabs(last_loss("rows", 0) - last_loss("whole", 0)) < 1e-5);
        assert_true(fabs(job_summary("rows", "final_val_loss") -
                         job_summary("whole", "final_val_loss")) < 1e-5);
    }
}

// ---- from mesh to mesh

static void checkpoints_go_from_mesh_to_mesh(void **state)
{
    (void)state;
    static const struct {
        const char *part[2];
        bool bits; // the same bits as the run without a break
    } runs[] = {
        {{"sync=ring mesh=tp2", "sync=ring mesh=tp2"}, true},
        {{"sync=local", "sync=ring mesh=tp3"}, false},
        {{"sync=zero mesh=pp2,tp2", "sync=local workers=1 mesh="}, false},
        {{"sync=ring mesh=tp4", "sync=ring mesh=pp2"}, false},
    };
    char words[256];
    train("sync=local steps=4", "whole");
    train("sync=ring mesh=tp2 steps=4 save=4", "straight");
    for (int i = 0; i < (test_long() ? 4 : 3); i++) {
        struct job j;
        snprintf(words, sizeof words, "steps=2 save=2 %s", runs[i].part[0]);
        train(words, "parts");
        job_run(&j, 100, "%s %s steps=4 save=4 resume=auto verify=1 out=parts",
                same, runs[i].part[1]);
        assert_ok(&j);
        assert_true(fabs(last_loss("parts", 0) - last_loss("whole", 0)) < 1e-5);
        if (runs[i].bits)
            assert_same_files("parts", "straight", 4);
    }
    struct job j;
    job_run(&j, 60, "lockstep sample straight prompt=the tokens=5");
    assert_ok(&j);
}

// ---- failures

// Each slice has a ring of its replicas. Slices have unequal lengths, so their
// rings add in different orders. To keep the tensors equal that all slices
// have, slice 0 sends its sums of these to the others.
static void replicas_of_unequal_slices_agree(void **state)
{
    (void)state;
    train("sync=ring mesh=dp2,tp2 wire=bf16 steps=6 verify=1 bucket_mb=0.02",
          "order");
    train("sync=ring mesh=dp2,tp2 wire=bf16 precision=bf16 steps=6 verify=1 "
          "bucket_mb=0.02",
          "order16");
    // the 16-bit copies of these tensors, too: a resumed run makes new ones
    struct job j;
    train("sync=ring mesh=dp2,tp2 wire=bf16 precision=bf16 steps=4 save=2 "
          "bucket_mb=0.02",
          "copies");
    job_run(&j, 60,
            "rm -rf half; cp -r copies half; "
            "%s sync=ring mesh=dp2,tp2 wire=bf16 precision=bf16 steps=4 save=2 "
            "bucket_mb=0.02 resume=half/checkpoint-2 out=half",
            same);
    assert_ok(&j);
    assert_same_files("copies", "half", 4);
    job_run(&j, 60, "%s sync=zero mesh=dp2,tp2 wire=bf16 steps=2 out=order2",
            same);
    assert_int_equal(j.status, 1);
    assert_prints(&j, "slices (tp) of unequal length and 2 replicas");
    assert_false(job_has("order2")); // nothing was started
}

static void a_lost_slice_is_named_by_its_place(void **state)
{
    (void)state;
    struct job j;
    job_run(&j, 60,
            "%s sync=ring mesh=dp2,tp2 steps=100000 inject=kill:3@3 "
            "out=killed",
            same);
    assert_int_equal(j.status, 1);
    assert_prints(&j, "rank 3 (dp 1, tp 1): killed by signal 9");
    job_run(&j, 60,
            "%s sync=ring mesh=tp2 steps=100000 timeout=2 "
            "inject=delay:3:20000@1 out=stopped",
            same);
    assert_int_equal(j.status, 1);
    assert_prints(&j, "rank 1 (tp 1)");
    assert_int_equal(job_processes(5), 0);
}

static void too_many_slices_are_refused(void **state)
{
    (void)state;
    struct job j;
    job_run(&j, 30, "%s sync=ring mesh=tp6 out=none", same);
    assert_status(&j, 1);
    assert_prints(&j, "5 heads and 257 words in 6 slices leave a slice without "
                      "a head or a word; try: tp5 or fewer");
    job_run(&j, 30, "%s sync=ring mesh=dp2 tp_sequence=1 out=none", same);
    assert_status(&j, 1);
    assert_prints(&j, "is for the slices of a mesh; try: mesh=tp2");
    job_run(&j, 30, "%s sync=ring mesh=dp2 tp_wire=bf16 out=none", same);
    assert_status(&j, 1);
    assert_prints(&j,
                  "tp_wire=bf16 is for the slices of a mesh; try: mesh=tp2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices_train_as_the_whole),
        cmocka_unit_test(rows_have_the_same_bits_everywhere),
        cmocka_unit_test(paced_slices_move_the_same_bytes),
        cmocka_unit_test(slices_of_replicas_and_stages),
        cmocka_unit_test(rows_of_replicas_and_stages),
        cmocka_unit_test(checkpoints_go_from_mesh_to_mesh),
        cmocka_unit_test(replicas_of_unequal_slices_agree),
        cmocka_unit_test(a_lost_slice_is_named_by_its_place),
        cmocka_unit_test(too_many_slices_are_refused),
    };
    return cmocka_run_group_tests(tests, job_text, job_cleanup);
}
