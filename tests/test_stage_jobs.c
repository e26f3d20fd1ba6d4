// test_stage_jobs.c - whole jobs of pipelines. Every schedule trains the same
// model and sends the bytes that the law says. A job on any mesh continues from
// a checkpoint of any other. An error about a stage that dies or stops names
// the stage's place in the mesh.

#include "base/base.h"
#include "tests/job_asserts.h"

#include <math.h>

enum { B = 3, T = 17, C = 32, V = 257 };

// Odd sizes, dropout, and clipping of the norm.
static const char same[] =
    "lockstep train data=text.txt model=nano layers=5 heads=4 channels=32 "
    "context=17 vocab_size=257 batch=3 threads=1 eval=0 log=0 "
    "warmup=0 timeout=30 dropout=0.1 clip=0.1 schedule=constant trace=off "
    "samples=0";

static void train(const char *words, const char *out)
{
    struct job j;
    job_run(&j, 100, "rm -rf %s; %s %s out=%s", out, same, words, out);
    assert_ok(&j);
}

// What run.json must say of the carriers between replicas and between stages.
static void check_carriers(const char *out, const char *replicas,
                           const char *stages)
{
    struct job j;
    char want[64];
    snprintf(want, sizeof want, "%s %s\n", replicas, stages);
    job_run(&j, 10,
            "python3 -c 'import json; r = json.load(open(\"%s/run.json\")); "
            "print(r[\"transport\"], r[\"transport_of\"][\"stages\"])'",
            out);
    assert_ok(&j);
    assert_string_equal(j.out, want);
}

// ---- every schedule trains the same model

struct way {
    const char *words;
    int stages, micro, chunks;
};

// The payload that a stage sends in a step, in bytes (train/stages.h).
static double law(const struct way *w, int stage)
{
    int first = stage == 0, last = stage == w->stages - 1;
    double stream = (double)w->micro * B * T * C * sizeof(float);
    double tied = first || last ? (double)V * C * sizeof(float) : 0;
    int ends = 2 * w->chunks - first - last;
    return ends * stream + tied + 16 * (w->stages - 1);
}

static void check_bytes(const struct way *w, const char *out)
{
    for (int s = 0; s < w->stages; s++) {
        double sent[8], came[8];
        assert_int_equal(job_column(out, "stage_tx", s, sent, 8), 5);
        assert_int_equal(job_column(out, "stage_rx", s, came, 8), 5);
        for (int k = 0; k < 5; k++) {
            assert_true(sent[k] == law(w, s));
            assert_true(came[k] == law(w, s));
        }
    }
}

static void one_model(int stages, int micro, const struct way *ways, int n)
{
    char words[256];
    for (int i = 0; i < n; i++) {
        struct way w = ways[i];
        w.stages = stages;
        w.micro = micro;
        snprintf(words, sizeof words, "mesh=pp%d accum=%d steps=5 save=5 %s",
                 stages, micro, w.words);
        train(words, i ? "other" : "one");
        check_bytes(&w, i ? "other" : "one");
        check_carriers(i ? "other" : "one", "none", "shm");
        if (i)
            assert_same_files("one", "other", 5);
    }
}

static void schedules_give_one_model(void **state)
{
    (void)state;
    static const struct way ways[] = {{"pipeline=gpipe", .chunks = 1},
                                      {"pipeline=1f1b", .chunks = 1},
                                      {"ahead=1", .chunks = 1},
                                      {"pipeline=naive", .chunks = 1},
                                      {"chunks=2", .chunks = 2}};
    static const int micro[] = {1, 2, 3, 8};
    one_model(2, 4, ways, 5);
    one_model(4, 3, ways, 2);
    for (int i = 0; test_long() && i < 4; i++) {
        one_model(2, micro[i], ways, micro[i] % 2 ? 4 : 5);
        one_model(4, micro[i], ways, 4);
    }
}

// ---- the whole model's numbers, from mesh to mesh

static double last_loss(const char *out, int rank)
{
    double loss[16];
    int n = job_column(out, "loss", rank, loss, 16);
    assert_true(n > 0);
    return loss[n - 1];
}

static void checkpoints_go_from_mesh_to_mesh(void **state)
{
    (void)state;
    static const struct {
        const char *part[2];
        bool bits; // the same bits as the run without a break
    } runs[] = {
        {{"sync=ring mesh=pp2", "sync=ring mesh=pp2"}, true},
        {{"sync=local", "sync=ring mesh=pp3 stages=1,3,1"}, false},
        {{"sync=ring mesh=pp3 stages=1,3,1", "sync=ring mesh=pp2"}, false},
        {{"sync=zero mesh=pp4 pipeline=gpipe", "sync=local workers=1 mesh="},
         false},
        {{"sync=ring mesh=dp1,pp2 chunks=2 accum=4",
          "sync=zero mesh=pp4 chunks=1 pipeline=naive accum=4"},
         false},
    };
    char words[256];
    train("sync=local accum=4 steps=6", "whole");
    train("sync=ring mesh=pp2 accum=4 steps=6 save=6", "straight");
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        struct job j;
        snprintf(words, sizeof words, "accum=4 steps=3 save=3 %s",
                 runs[i].part[0]);
        train(words, "parts");
        job_run(&j, 100,
                "%s accum=4 %s steps=6 save=3 resume=auto verify=1 out=parts",
                same, runs[i].part[1]);
        assert_ok(&j);
        assert_true(fabs(last_loss("parts", 0) - last_loss("whole", 0)) < 1e-5);
        if (runs[i].bits)
            assert_same_files("parts", "straight", 6);
    }
}

static double of_rank(const char *out, int rank, const char *key)
{
    char path[128];
    snprintf(path, sizeof path, "ranks.%d.%s", rank, key);
    return job_summary(out, path);
}

// Checks that summary.json has, for each rank, its place, the bytes that it
// sends along each axis, and its memory. The job has mesh=dp2,pp2 and three
// micro-batches.
static void check_ranks(const char *out)
{
    const struct way w = {.stages = 2, .micro = 3, .chunks = 1};
    double dp = 0, pp = 0;
    for (int r = 0; r < 4; r++) {
        double bytes[8];
        int n = job_column(out, "bytes_tx", r, bytes, 8);
        assert_true(n > 0);
        assert_true(of_rank(out, r, "dp") == r / 2);
        assert_true(of_rank(out, r, "pp") == r % 2);
        assert_true(of_rank(out, r, "bytes_tx_per_step_by_axis.dp") ==
                    bytes[n - 1]);
        assert_true(of_rank(out, r, "bytes_tx_per_step_by_axis.pp") ==
                    law(&w, r % 2));
        assert_true(of_rank(out, r, "peak_memory_bytes") > 1e6);
        dp += bytes[n - 1] / 4;
        pp += law(&w, r % 2) / 4;
    }
    assert_true(job_summary(out, "bytes_tx_per_step_by_axis.dp") == dp);
    assert_true(job_summary(out, "bytes_tx_per_step_by_axis.pp") == pp);
    // Of five layers the first stage has three, and it has wpe.
    assert_true(of_rank(out, 2, "predicted_memory.parameters_bytes") >
                of_rank(out, 3, "predicted_memory.parameters_bytes"));
}

// Replicas of a pipeline, with every backend that sums their gradients. All
// backends must write the same files, since a sum of two numbers is the same in
// either order.
static void replicas_of_stages(void **state)
{
    (void)state;
    static const char *const ways[] = {"sync=ring mesh=dp2,pp2",
                                       "sync=ring mesh=pp2,dp2 transport=tcp",
                                       "sync=allreduce mesh=dp2,pp2",
                                       "sync=zero mesh=dp2,pp2"};
    char words[256];
    train("sync=ring mesh=dp2 accum=3 steps=4 eval=4 eval_batches=2", "whole");
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        snprintf(words, sizeof words,
                 "accum=3 steps=4 save=4 verify=1 eval=4 eval_batches=2 %s",
                 ways[i]);
        train(words, i ? "other" : "one");
        if (i < 2)
            check_carriers(i ? "other" : "one", i ? "tcp" : "shm",
                           i ? "tcp" : "shm");
        if (i)
            assert_same_files("one", "other", 4);
    }
    assert_true(fabs(last_loss("one", 0) - last_loss("whole", 0)) < 1e-5);
    assert_true(last_loss("one", 0) == last_loss("one", 1)); // one replica
    assert_true(fabs(last_loss("one", 3) - last_loss("whole", 1)) < 1e-5);
    assert_true(fabs(job_summary("one", "final_val_loss") -
                     job_summary("whole", "final_val_loss")) < 1e-5);
    check_ranks("other");
    struct job j; // two replicas of three micro-batches of B sequences
    job_run(&j, 60,
            "lockstep report other >/dev/null && head -2 other/runs.csv");
    assert_ok(&j);
    assert_prints(&j, ",global_batch,");
    assert_prints(&j, ",4,0,18,"); // workers, servers, global_batch
}

// Each stage has a ring of its replicas, and those of the first and the last
// stage add the gradient of the tied table in different orders. The table must
// stay the same on both, and so a resumed run has the same bits.
static void the_tied_table_stays_one(void **state)
{
    (void)state;
    static const char *const ways[] = {
        "sync=ring mesh=dp3,pp2",
        "sync=ring mesh=dp2,pp2 wire=bf16 precision=bf16",
        "sync=zero mesh=dp2,pp2 wire=bf16 precision=bf16"};
    char words[256];
    struct job j;
    for (int i = 0; i < 3; i++) {
        snprintf(words, sizeof words,
                 "accum=2 verify=1 keep=all save=3 bucket_mb=0.02 %s", ways[i]);
        strcat(words, " steps=6");
        train(words, "tied");
        job_run(&j, 60, "rm -rf half; %s %s resume=tied/checkpoint-3 out=half",
                same, words);
        assert_ok(&j);
        assert_same_files("tied", "half", 6);
    }
}

// An element that is not finite in the last stage's sum of the table's gradient
// is noticed, although the norm counts the first stage's only.
static void an_overflow_of_the_last_stage_is_skipped(void **state)
{
    (void)state;
    struct job j;
    job_run(&j, 60,
            "%s sync=ring mesh=dp2,pp2 precision=fp16 accum=3 steps=6 verify=1 "
            "inject=inf:4@1 out=inf",
            same);
    assert_ok(&j);
    assert_prints(&j, "step 4: the gradient overflows");
}

// ---- deadlines

// No action of a stage takes as long as timeout=, but some messages are awaited
// for longer: the first gradient of a stage that is still busy with forwards,
// and messages that pass through several stages.
static void working_stages_are_not_late(void **state)
{
    (void)state;
    static const char *const ways[] = {
        "mesh=pp2 pipeline=gpipe accum=16 pace=250,0 timeout=3",
        "mesh=pp4 pipeline=naive pace=600,600 timeout=3"};
    struct job j;
    for (int i = 0; i < 2; i++) {
        job_run(&j, 60, "%s sync=ring steps=1 %s out=slow%d", same, ways[i], i);
        assert_ok(&j);
    }
}

// ---- failures

static void a_lost_stage_is_named_by_its_place(void **state)
{
    (void)state;
    struct job j;
    job_run(&j, 60,
            "%s sync=ring mesh=dp2,pp2 accum=3 steps=100000 "
            "inject=kill:3@3 out=killed",
            same);
    assert_int_equal(j.status, 1);
    assert_prints(&j, "rank 3 (dp 1, pp 1): killed by signal 9");
    job_run(&j, 60,
            "%s sync=ring mesh=pp2 accum=3 steps=100000 timeout=2 "
            "inject=delay:3:20000@1 out=stopped",
            same);
    assert_int_equal(j.status, 1);
    assert_prints(&j, "nothing from rank 1 (pp 1) for 4 s");
    assert_prints(&j, "timeout= (step 3)");
    assert_int_equal(job_processes(5), 0);
}

static double sum_of(const char *out, const char *column, int rank)
{
    double v[16], sum = 0;
    int n = job_column(out, column, rank, v, 16);
    assert_true(n > 0);
    while (n > 0)
        sum += v[--n];
    return sum;
}

// A straggler takes twice as long for its own work. It also waits for three
// stages that do as much work, at normal speed. Waiting is not work, so it must
// not be doubled: if it were, computing would take longer than waiting.
static void a_stragglers_waits_are_not_its_work(void **state)
{
    (void)state;
    struct job j;
    job_run(&j, 60,
            "%s sync=ring mesh=pp4 pipeline=naive accum=4 steps=3 pace=6,9 "
            "straggler=3:2 out=straggler",
            same);
    assert_ok(&j);
    assert_true(sum_of("straggler", "t_compute_us", 3) <
                sum_of("straggler", "t_bubble_us", 3));
}

// With pace=, stages sleep instead of computing. They move the same bytes as
// stages that compute, and the log says that they sleep.
static void paced_stages(void **state)
{
    (void)state;
    const struct way w = {.stages = 4, .micro = 3, .chunks = 1};
    double all[8], other[8];
    struct job j;
    train("sync=ring mesh=dp2,pp2 accum=3 steps=5", "computed");
    job_run(&j, 60,
            "%s sync=ring mesh=dp2,pp2 accum=3 steps=5 pace=2,3 "
            "out=paced",
            same);
    assert_ok(&j);
    assert_prints(&j, "pace=2,3: workers sleep instead of computing");
    for (int rank = 0; rank < 4; rank++) {
        static const char *const columns[] = {"bytes_tx", "stage_tx"};
        for (int c = 0; c < 2; c++) {
            assert_int_equal(job_column("computed", columns[c], rank, all, 8),
                             5);
            assert_int_equal(job_column("paced", columns[c], rank, other, 8),
                             5);
            for (int k = 0; k < 5; k++)
                assert_true(all[k] == other[k]);
        }
        job_column("paced", "t_compute_us", rank, all, 8);
        job_column("paced", "loss", rank, other, 8);
        for (int k = 0; k < 5; k++) {
            assert_true(all[k] >= 3 * (2000 + 3000)); // no sleep is shorter
            assert_true(isnan(other[k]));
        }
    }
    job_run(&j, 60,
            "%s sync=ring mesh=pp4 accum=3 steps=5 pace=0,0 "
            "ahead=1 out=quick",
            same);
    assert_ok(&j);
    check_bytes(&w, "quick");
    job_run(&j, 60,
            "%s sync=ring mesh=pp3 accum=3 steps=5 pace=1,2 trace=on "
            "out=traced && awk -F, 'NR > 1 && !($3 < 60) {exit 1}' "
            "traced/breakdown.csv",
            same);
    assert_ok(&j); // a time below 0 would have wrapped to a huge one
    job_run(&j, 60, "lockstep report quick traced out=both");
    assert_ok(&j);
    assert_prints(&j, "slept (pace=1,2), so it has no loss");
    // Sleeping slices join as often as computing slices do. Only the loss is
    // not computed: three floats a row.
    train("sync=ring mesh=pp2,tp2 transport=tcp accum=3 steps=5", "sliced");
    job_run(&j, 60,
            "%s sync=ring mesh=pp2,tp2 transport=tcp accum=3 steps=5 pace=0,0 "
            "out=joined",
            same);
    assert_ok(&j);
    for (int rank = 0; rank < 4; rank++) {
        double loss = rank / 2 ? 3 * 3.0 * B * T * sizeof(float) : 0;
        assert_int_equal(job_column("sliced", "slice_tx", rank, all, 8), 5);
        assert_int_equal(job_column("joined", "slice_tx", rank, other, 8), 5);
        for (int k = 0; k < 5; k++)
            assert_true(all[k] == other[k] + loss);
    }
    job_run(&j, 30, "lockstep report quick");
    assert_ok(&j);
    assert_prints(&j, "slept: pace=0,0");
    assert_null(strstr(j.out, "loss.gp"));
    job_run(&j, 30,
            "lockstep report paced >/dev/null && head -2 paced/runs.csv"
            " | cut -d, -f 2-");
    assert_ok(&j);
    assert_prints(&j, "bubble_share,law_bubble_share,timetable_bubble_share");
    assert_prints(&j, ",0.25,"); // (p-1)/(m+p-1), p=2, m=3
    job_run(&j, 30, "%s sync=ring mesh=pp2 save=5 pace=1,1 out=saved", same);
    assert_status(&j, 1);
    assert_prints(&j, "pace=1,1: nothing is computed, so there is nothing for "
                      "save=5 to do; try: leave save= out");
}

static void accum_fits_the_stages(void **state)
{
    (void)state;
    struct job j;
    job_run(&j, 30, "%s sync=ring mesh=pp2 chunks=2 accum=3", same);
    assert_status(&j, 1);
    assert_prints(&j, "chunks=2: accum=3 micro-batches are no multiple of 2 "
                      "stages; try: accum=4");
    job_run(&j, 30, "%s sync=ring mesh=pp2 accum=5000", same);
    assert_status(&j, 1);
    assert_prints(&j, "accum=5000: a pipeline takes at most 4096 micro-batches "
                      "in a step; try: accum=4096");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schedules_give_one_model),
        cmocka_unit_test(checkpoints_go_from_mesh_to_mesh),
        cmocka_unit_test(replicas_of_stages),
        cmocka_unit_test(the_tied_table_stays_one),
        cmocka_unit_test(an_overflow_of_the_last_stage_is_skipped),
        cmocka_unit_test(working_stages_are_not_late),
        cmocka_unit_test(a_lost_stage_is_named_by_its_place),
        cmocka_unit_test(a_stragglers_waits_are_not_its_work),
        cmocka_unit_test(paced_stages),
        cmocka_unit_test(accum_fits_the_stages),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, job_text, job_cleanup);
}
