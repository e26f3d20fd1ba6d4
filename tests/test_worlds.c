// test_worlds.c - stages, slices and divided sequences do not change the losses
// and norms of a run. The test covers all meshes of one or two replicas,
// stages, slices and pieces, with every strategy that sums the gradients of
// replicas. The runs begin with trained parameters, and the norm is clipped.

#include "base/base.h"
#include "tests/job_asserts.h"

#include <math.h>
#include <unistd.h>

enum { FROM = 5, TO = 8 };
static const double clip = 0.05;

// Odd numbers of symbols, layers and positions.
static const char same[] =
    "lockstep train data=text.txt model=nano layers=5 heads=4 channels=32 "
    "context=17 vocab_size=257 batch=3 threads=1 log=0 warmup=0 timeout=60 "
    "schedule=constant trace=off samples=0 eval=6 eval_batches=2";

static const char *const ways[] = {"ring", "allreduce", "zero shard=1",
                                   "zero shard=2"};
enum { WAYS = 4, WORLDS = 16 * WAYS };

struct world {
    int dp, pp, tp, cp, accum;
    double dropout;
    const char *way;
    bool refused; // parts of a model exchange gradients only once a step
};

// World i. Some of the worlds have accumulation, some have dropout.
static struct world world_at(int i)
{
    int mesh = i / WAYS, spread = mesh + i % WAYS;
    struct world w = {.dp = 1 + mesh / 4 % 2,
                      .pp = 1 + mesh / 2 % 2,
                      .tp = 1 + mesh % 2,
                      .cp = 1 + mesh / 8,
                      .accum = spread % 2 ? 3 : 1,
                      .dropout = spread / 2 % 2 ? 0.1 : 0,
                      .way = ways[i % WAYS]};
    w.refused = w.pp * w.tp * w.cp > 1 && i % WAYS == WAYS - 1;
    return w;
}

// Trains a world or, with `whole`, the run with as many replicas of whole
// models. Replicas differ in their data, so their number must agree.
static void train(struct job *j, const struct world *w, bool whole)
{
    char mesh[64] = "local";
    if (!whole)
        snprintf(mesh, sizeof mesh, "%s mesh=dp%d,pp%d,tp%d,cp%d", w->way,
                 w->dp, w->pp, w->tp, w->cp);
    else if (w->dp > 1)
        snprintf(mesh, sizeof mesh, "ring workers=%d", w->dp);
    const char *out = whole ? "whole" : "cut";
    job_run(j, 120,
            "rm -rf %s; cp -r start %s && %s resume=%s/checkpoint-%d "
            "sync=%s accum=%d dropout=%g clip=%g lr=0.002 steps=%d out=%s",
            out, out, same, out, FROM, mesh, w->accum, w->dropout, clip, TO,
            out);
}

static bool near(double a, double b, double relative)
{
    return fabs(a - b) <= relative * fabs(b);
}

static void check_column(const char *name, double least, double relative)
{
    double whole[TO], cut[TO];
    int n = job_column("whole", name, 0, whole, TO);
    assert_true(n >= TO - FROM);
    assert_int_equal(job_column("cut", name, 0, cut, TO), n);
    for (int k = 0; k < n; k++) {
        if (!near(cut[k], whole[k], relative) || !(whole[k] > least))
            print_error("%s, row %d: %.9g, whole %.9g\n", name, k, cut[k],
                        whole[k]);
        assert_true(near(cut[k], whole[k], relative));
        assert_true(k < n - (TO - FROM) || whole[k] > least);
    }
}

static void check_world(int i)
{
    struct world w = world_at(i);
    struct job j;
    print_message("%s mesh=dp%d,pp%d,tp%d,cp%d accum=%d dropout=%g\n", w.way,
                  w.dp, w.pp, w.tp, w.cp, w.accum, w.dropout);
    train(&j, &w, false);
    if (w.refused) {
        assert_status(&j, 1);
        assert_prints(&j,
                      "shard=2 exchanges gradients after every micro-batch");
        return;
    }
    assert_ok(&j);
    train(&j, &w, true);
    assert_ok(&j);
    check_column("loss", 0, 1e-5);
    check_column("grad_norm", clip, 1e-5);
    assert_true(near(job_summary("cut", "final_val_loss"),
                     job_summary("whole", "final_val_loss"), 1e-5));
}

static void worlds(void **state)
{
    (void)state;
    static const int few[] = {7, 14, 21, 28, 38, 49}; // some of each way
    struct job j;
    // This learning rate moves parameters far. The worlds' runs have a tenth of
    // it, so that rounding is not amplified.
    job_run(&j, 60, "%s sync=local lr=0.02 steps=%d save=%d out=start", same,
            FROM, FROM);
    assert_ok(&j);
    if (test_long())
        for (int i = 0; i < WORLDS; i++)
            check_world(i);
    else
        for (size_t i = 0; i < sizeof few / sizeof *few; i++)
            check_world(few[i]);
}

// ---- hosts

// The host of a rank in run.json: 'a' for that of rank 0, 'b' for another.
static char host_of(int rank)
{
    struct job j;
    job_run(&j, 10,
            "host() { grep -o \"\\\"rank $1\\\":.*host [^,]*\" "
            "hosts/run.json | sed 's/.*host //'; }; "
            "test -n \"$(host %d)\" || exit 2; "
            "test \"$(host 0)\" = \"$(host %d)\"",
            rank, rank);
    assert_true(j.status == 0 || j.status == 1);
    return j.status ? 'b' : 'a';
}

// Runs a job on emulated hosts, or skips the test.
static void on_hosts(const char *words)
{
    struct job j;
    if (geteuid())
        skip();
    job_run(&j, 100, "%s steps=2 %s", same, words);
    if (j.status && strstr(j.out, "net=")) {
        print_message("%s", j.out);
        skip();
    }
    assert_ok(&j);
}

// Three stages of two replicas on two hosts of three ranks. The replicas of the
// first stage share a host and those of the second do not, yet all use one
// carrier.
static void ranks_are_placed_in_blocks(void **state)
{
    (void)state;
    on_hosts("sync=ring mesh=pp3,dp2 accum=2 net=1gbit,hosts=2 out=hosts");
    for (int rank = 0; rank < 6; rank++)
        assert_int_equal(host_of(rank), rank < 3 ? 'a' : 'b');
}

// Stages listen at the emulated hosts' addresses even if a library carries the
// gradients.
static void stages_listen_beside_a_library(void **state)
{
    (void)state;
    on_hosts("sync=allreduce mesh=dp2,pp2 accum=2 net=1gbit,hosts=2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(worlds),
        cmocka_unit_test(stages_listen_beside_a_library),
        cmocka_unit_test(ranks_are_placed_in_blocks),
    };
    return cmocka_run_group_tests(tests, job_text, job_cleanup);
}
