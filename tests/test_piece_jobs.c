// test_piece_jobs.c - whole jobs whose workers divide sequences (mesh=cpN, or
// cpN,upM).
// They have one worker's losses and norms, send the bytes that the law says,
// and end with the same parameters on all workers. A job continues on any other
// mesh.

#include "base/base.h"
#include "base/zigzag.h"
#include "tests/job_asserts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { STEPS = 4, C = 35, L = 5, MICRO = 2, BATCH = 3 };

// 17 tokens, which no number of workers divides, dropout and clipping.
static const char same[] =
    "lockstep train data=text.txt model=nano layers=5 heads=5 channels=35 "
    "vocab_size=257 batch=3 accum=2 threads=1 log=0 warmup=0 timeout=30 "
    "dropout=0.1 clip=0.1 schedule=constant trace=off samples=0 steps=4 eval=4 "
    "eval_batches=2 verify=1";

static void train(const char *words, const char *out)
{
    struct job j;
    job_run(&j, 100, "rm -rf %s; %s context=17 %s out=%s", out, same, words,
            out);
    assert_ok(&j);
}

static double last(const char *out, const char *column, int rank)
{
    double v[16];
    int n = job_column(out, column, rank, v, 16);
    assert_true(n > 0);
    return v[n - 1];
}

static void check_same(const char *out, const char *whole, int ranks,
                       double within)
{
    for (int r = 0; r < ranks; r++)
        assert_true(fabs(last(out, "loss", r) - last(whole, "loss", 0)) <
                    within);
    assert_true(fabs(last(out, "grad_norm", 0) - last(whole, "grad_norm", 0)) <
                10 * within);
    assert_true(fabs(job_summary(out, "final_val_loss") -
                     job_summary(whole, "final_val_loss")) < within);
    assert_true(last(out, "tokens", 0) == last(whole, "tokens", 0));
}

// The mean payload in a step of n workers, of which `up` exchange heads: b
// bytes a number, T tokens.
static double law(int n, int up, int T, int b, bool recompute)
{
    double stays = 0, groups = n / up; // stays: what a worker has already
    for (int w = 0; w < n; w++)
        stays +=
            zigzag_of(T, n, w).own * (5 / up + (w % up < 5 % up)) / 5.0 / T;
    double heads = up > 1 ? (8.0 + 4 * recompute) * (1 - stays) * b / n : 0;
    double keys = 2.0 / up * (groups - 1) / groups * ((2 + recompute) * b + 4);
    return MICRO * L * (heads + keys) * BATCH * T * C + 8 * (up - 1) +
           8 * (groups - 1);
}

// up: on the mesh; 1: no groups.
static void check_groups(int n, int up, int T, const char *words, double within)
{
    char all[256];
    double sent = 0, came = 0;
    bool half = strstr(words, "bf16") || strstr(words, "fp16"),
         again = strstr(words, "recompute=1");
    int share = strstr(words, "heads") ? n : up;
    snprintf(all, sizeof all, "context=%d mesh=cp%d,up%d %s", T, n / up, up,
             words);
    train(all, "pieces");
    for (int r = 0; r < n; r++) {
        sent += last("pieces", "piece_tx", r) / n;
        came += last("pieces", "piece_rx", r) / n;
    }
    assert_true(fabs(sent - law(n, share, T, half ? 2 : 4, again)) < 1e-6);
    assert_true(fabs(came - sent) < 1e-6);
    assert_true(fabs(job_law("pieces", "piece_tx") - sent) < 1e-3);
    check_same("pieces", "whole", n, within);
}

static void check_pieces(int n, int T, const char *words, double within)
{
    check_groups(n, 1, T, words, within);
}

static void pieces_train_as_the_whole(void **state)
{
    (void)state;
    train("sync=local", "whole");
    for (int n = 2; n <= 4; n++) {
        check_pieces(n, 17, "transport=tcp", 1e-5);
        check_pieces(n, 17, "attention_over=ring", 1e-5);
        check_pieces(n, 17, "attention_over=heads", 1e-5);
    }
    check_pieces(3, 17, "recompute=1", 1e-5);
    check_pieces(3, 17, "recompute=1 attention_over=ring", 1e-5);
    check_pieces(3, 17, "recompute=1 attention_over=heads transport=tcp", 1e-5);
    train("sync=local context=5", "whole"); // below the number of pieces
    check_pieces(4, 5, "attention_over=ring transport=tcp", 1e-5);
    check_pieces(3, 5, "attention_over=heads", 1e-5);
    train("sync=local precision=bf16", "whole");
    check_pieces(2, 17, "precision=bf16", 2e-3);
    check_pieces(2, 17, "precision=bf16 attention_over=ring", 2e-3);
    check_pieces(3, 17, "precision=bf16 attention_over=heads", 2e-3);
    if (test_long())
        check_pieces(4, 17, "precision=bf16 attention_over=ring", 2e-3);
    train("sync=local precision=fp16", "whole");
    check_pieces(3, 17, "precision=fp16 attention_over=ring", 2e-3);
}

// 5 heads, which no group divides; groups of 2 and of 3.
static void groups_train_as_the_whole(void **state)
{
    (void)state;
    train("sync=local", "whole");
    check_groups(4, 2, 17, "transport=tcp", 1e-5);
    check_groups(4, 2, 17, "attention_over=ring", 1e-5);
    check_groups(6, 3, 17, "attention_over=ring recompute=1 transport=tcp",
                 1e-5);
    if (test_long())
        check_groups(6, 2, 17, "recompute=1", 1e-5);
    train("sync=local precision=bf16", "whole");
    check_groups(4, 2, 17, "precision=bf16 attention_over=ring", 2e-3);
    train("sync=local context=5", "whole"); // below the number of pieces
    check_groups(4, 2, 5, "attention_over=ring", 1e-5);
}

// verify=1 compares the parameters of all workers after each step, to the bit.
static void workers_stay_equal(void **state)
{
    (void)state;
    static const char *const ways[] = {"cp3 attention_over=gather",
                                       "cp3 attention_over=ring",
                                       "cp3 attention_over=heads",
                                       "up2,cp2 attention_over=ring"};
    train("sync=local steps=20", "whole");
    for (int i = 0; i < 4; i++) {
        char words[128];
        snprintf(words, sizeof words, "steps=20 mesh=%s", ways[i]);
        train(words, "long");
        check_same("long", "whole", 3, 1e-5);
    }
}

// Over TCP the sums of keys' gradients are added in the order of the ring.
static void both_ways_have_the_same_bits(void **state)
{
    (void)state;
    static const char *const meshes[] = {"cp3", "cp3,up2"};
    for (int i = 0; i < 2; i++) {
        char words[128];
        snprintf(words, sizeof words, "mesh=%s save=4 transport=tcp",
                 meshes[i]);
        train(words, "gather");
        strcat(words, " attention_over=ring");
        train(words, "ring");
        assert_same_files("gather", "ring", 4);
    }
}

// The mean of all ranks is what the law says, or there is neither.
static void check_bytes(const char *out, const char *axis)
{
    double sent = 0, one, law = job_law(out, axis);
    int ranks = 0;
    for (; job_column(out, axis, ranks, &one, 1) == 1; ranks++)
        sent += last(out, axis, ranks);
    assert_true(ranks > 1);
    if (!isfinite(law))
        assert_true(!(sent > 0));
    else
        assert_true(fabs(sent / ranks - law) < 1e-3);
}

static void pieces_of_replicas_stages_and_slices(void **state)
{
    (void)state;
    static const char *const axes[] = {"stage_tx", "slice_tx", "piece_tx"};
    static const struct {
        const char *words;
        int ranks, replicas;
    } ways[] = {
        {"sync=zero mesh=cp2,dp2 attention_over=ring", 2, 2},
        {"sync=ring mesh=dp2,pp2,cp2 attention_over=ring", 2, 2},
        {"sync=ring mesh=cp2,tp2 tp_sequence=1 attention_over=heads", 4, 1},
        {"sync=zero mesh=dp2,cp2,up2 attention_over=ring", 4, 2},
        {"sync=allreduce mesh=dp2,cp2", 2, 2},
        {"sync=ring mesh=cp2,up2,tp2 tp_sequence=1 attention_over=gather", 8,
         1},
        {"sync=ring mesh=pp2,up2,cp2 attention_over=ring recompute=1", 8, 1},
        {"sync=ring mesh=pp2,tp2,cp2", 8, 1},
    };
    train("sync=local", "one");
    train("sync=ring mesh=dp2", "two");
    for (int i = 0; i < (test_long() ? 8 : 4); i++) {
        train(ways[i].words, "all");
        check_same("all", ways[i].replicas == 2 ? "two" : "one",
                   ways[i].replicas == 2 ? 1 : ways[i].ranks, 1e-5);
        for (int k = 0; k < 3; k++)
            check_bytes("all", axes[k]);
    }
}

// Half of the steps on one mesh, half on another.
static void checkpoints_go_from_mesh_to_mesh(void **state)
{
    (void)state;
    static const char *const ways[][2] = {
        {"mesh=cp3 attention_over=ring", "sync=local workers=1 mesh="},
        {"sync=local", "mesh=cp2 attention_over=ring"},
        {"mesh=pp2 sync=ring", "mesh=cp2"},
        {"mesh=cp3 attention_over=heads", "mesh=cp2,up2"}};
    struct job j;
    train("sync=local", "whole");
    for (int i = 0; i < 4; i++) {
        job_run(&j, 100,
                "rm -rf parts; %s context=17 steps=2 save=2 eval=0 %s out=parts"
                " && %s context=17 save=4 %s resume=auto out=parts",
                same, ways[i][0], same, ways[i][1]);
        assert_ok(&j);
        assert_true(fabs(last("parts", "loss", 0) - last("whole", "loss", 0)) <
                    1e-5);
    }
    job_run(&j, 60, "lockstep sample parts prompt=the tokens=5");
    assert_ok(&j);
}

// Each of these shapes takes the same six sequences in a step. Without dropout,
// whose masks differ between replicas.
static void checkpoints_go_from_any_shape_to_any_other(void **state)
{
    (void)state;
    static const char *const shapes[] = {
        "sync=local workers=1 mesh= accum=2",
        "sync=ring mesh=cp2 attention_over=gather accum=2",
        "sync=ring mesh=cp3 attention_over=ring accum=2",
        "sync=ring mesh=cp2 attention_over=heads accum=2",
        "sync=ring mesh=pp2,cp2 attention_over=ring accum=2",
        "sync=ring mesh=cp2,tp2 tp_sequence=1 attention_over=gather accum=2",
        "sync=ring mesh=cp2,up2 attention_over=ring accum=2",
        "sync=zero mesh=dp2,cp2 attention_over=ring accum=1",
        "sync=zero shard=3 workers=2 mesh= accum=1"};
    enum { SHAPES = sizeof shapes / sizeof *shapes };
    struct job j;
    if (!test_long())
        skip();
    train("sync=local dropout=0", "whole");
    for (int i = 0; i < SHAPES; i++) {
        job_run(&j, 100,
                "rm -rf half%d; %s context=17 dropout=0 %s steps=2 save=2 "
                "eval=0 out=half%d",
                i, same, shapes[i], i);
        assert_ok(&j);
    }
    for (int i = 0; i < SHAPES * SHAPES; i++) {
        const char *into = shapes[i % SHAPES];
        job_run(&j, 100,
                "rm -rf parts; cp -r half%d parts; %s context=17 dropout=0 "
                "%s resume=auto out=parts",
                i / SHAPES, same, into);
        assert_ok(&j);
        print_message("from %s into %s\n", shapes[i / SHAPES], into);
        assert_true(fabs(last("parts", "grad_norm", 0) -
                         last("whole", "grad_norm", 0)) < 1e-4);
        if (strstr(into, "dp2") || strstr(into, "workers=2"))
            continue; // a replica's loss is not that of all sequences
        assert_true(fabs(last("parts", "loss", 0) - last("whole", "loss", 0)) <
                    1e-5);
        assert_true(fabs(job_summary("parts", "final_val_loss") -
                         job_summary("whole", "final_val_loss")) < 1e-5);
    }
}

static void what_has_no_meaning_is_refused(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"mesh=cp4 context=3",
         "mesh=cp4: 4 workers (cp) divide sequences of 3"},
        {"mesh=tp2,cp3 attention_over=heads", "divide 2 heads"},
        {"mesh=cp2 sync=zero shard=2", "divided sequences (cp) only after"},
        {"mesh=cp2 sync=sps", "sync=sps has no divided sequences (cp)"},
        {"mesh=dp2 sync=ring attention_over=ring", "try: mesh=cp2"},
        {"mesh=cp2 squeeze=topk", "a mesh of replicas only"},
        {"mesh=up2", "try: mesh=cp2 attention_over=heads"},
        {"mesh=cp2,up2 attention_over=heads", "try: ring, or cp4 without up"},
        {"mesh=tp2,cp2,up3", "3 workers divide 2 heads"},
        {"mesh=cp3,up3 context=8", "9 workers (cp) divide sequences of 8"},
        {"mesh=cp2 device=cuda attention=cudnn precision=bf16 dropout=0",
         "attention=cudnn computes whole sequences"},
        {"mesh=cp2 pace=1,1 eval=0 verify=0", "try: without pace="},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct job j;
        job_run(&j, 30, "%s context=17 %s out=none", same, cases[i][0]);
        assert_status(&j, 1);
        assert_prints(&j, cases[i][1]);
        assert_false(job_has("none")); // nothing was started
    }
}

static void a_lost_worker_is_named_by_its_place(void **state)
{
    (void)state;
    static const char *const ways[][2] = {
        {"dp2,cp2 attention_over=gather", "(dp 1, cp 1)"},
        {"dp2,cp2 attention_over=ring", "(dp 1, cp 1)"},
        {"cp2,up2 attention_over=ring", "(cp 1, up 1)"}};
    for (int i = 0; i < 3; i++) {
        struct job j;
        job_run(&j, 60,
                "rm -rf killed; "
                "%s context=17 mesh=%s sync=ring steps=100000 "
                "inject=kill:3@3 out=killed",
                same, ways[i][0]);
        assert_status(&j, 1);
        assert_prints(&j, "killed by signal 9");
        assert_prints(&j, ways[i][1]);
        assert_int_equal(job_processes(5), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_train_as_the_whole),
        cmocka_unit_test(groups_train_as_the_whole),
        cmocka_unit_test(workers_stay_equal),
        cmocka_unit_test(both_ways_have_the_same_bits),
        cmocka_unit_test(pieces_of_replicas_stages_and_slices),
        cmocka_unit_test(checkpoints_go_from_mesh_to_mesh),
        cmocka_unit_test(checkpoints_go_from_any_shape_to_any_other),
        cmocka_unit_test(what_has_no_meaning_is_refused),
        cmocka_unit_test(a_lost_worker_is_named_by_its_place),
    };
    return cmocka_run_group_tests(tests, job_text, job_cleanup);
}
