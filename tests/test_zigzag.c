// test_zigzag.c - the work of eight workers that divide a sequence: with the
// zigzag all have the same, with one contiguous piece each the last one has
// (2n - 1) / n of the mean. So n workers reach n / (2n - 1) of the ideal.
//
//     test_zigzag times     prints the shares of experiments/claims.md: of the
//                           ideal by counted scores, and of the zigzag's speed
//                           by the time of the busiest worker's attention

#include "base/base.h"
#include "base/median.h"
#include "base/zigzag.h"
#include "model/kernels.h"
#include "tests/test.h"

#include <math.h>
#include <omp.h>

enum { TOKENS = 8192, WORKERS = 8, CHANNELS = 64, ROUNDS = 7 };

// How worker r of n has its tokens of a sequence.
typedef struct zigzag division(int tokens, int n, int r);

static struct zigzag contiguous(int T, int n, int r)
{
    int more = T % n, own = T / n + (r < more);
    return (
        struct zigzag){.tokens = T,
                       .own = own,
                       .run = {{r * (T / n) + (r < more ? r : more), own, 0},
                               {.at = own}}};
}

// ---- one worker's blocks

typedef void block_fn(void *ctx, const struct attention_runs *r);

// Calls `block` for each block of worker r's queries and any worker's keys.
static void each_block(division *divide, int n, int r, block_fn *block,
                       void *ctx)
{
    struct zigzag own = divide(TOKENS, n, r);
    for (int i = 0; i < n * ZIGZAG_PIECES * ZIGZAG_PIECES; i++) {
        struct zigzag theirs = divide(TOKENS, n, i / 4);
        const struct attention_runs runs = {own.run[i / 2 % 2],
                                            theirs.run[i % 2], own.own,
                                            theirs.own, i < 4 && i % 2 == 0};
        if (runs.queries.n && runs.keys.n &&
            runs.keys.first <= runs.queries.first)
            block(ctx, &runs);
    }
}

static void count(void *ctx, const struct attention_runs *r)
{
    for (int t = 0; t < r->queries.n; t += ATTENTION_STEP)
        *(double *)ctx += ATTENTION_STEP * attention_strip_keys(r, t);
}

// The scores that worker r of n computes.
static double scores(division *divide, int n, int r)
{
    double sum = 0;
    each_block(divide, n, r, count, &sum);
    return sum;
}

// The share of the ideal: the scores of one worker's whole attention divided by
// n times those of the busiest of n workers.
static double counted(division *divide, int n)
{
    double most = 0;
    for (int r = 0; r < n; r++)
        most = fmax(most, scores(divide, n, r));
    return scores(contiguous, 1, 0) / n / most;
}

// ---- counted work

// A worker's share of the diagonal is whole tiles, of which half is not needed.
static void contiguous_pieces_reach_half_of_the_ideal(void **state)
{
    (void)state;
    for (int n = 2; n <= WORKERS; n++) {
        double share = counted(contiguous, n), tile = 2.0 * ATTENTION_STEP;
        assert_true(fabs(share - n / (2.0 * n - 1)) <= tile * n / TOKENS);
    }
}

static void the_zigzag_divides_the_work_equally(void **state)
{
    (void)state;
    for (int n = 2; n <= WORKERS; n++) {
        double one = scores(zigzag_of, n, 0);
        double rows = 2.0 * n * ATTENTION_STEP; // that pieces are padded by
        for (int r = 1; r < n; r++)
            assert_true(fabs(scores(zigzag_of, n, r) / one - 1) <=
                        rows / TOKENS);
        assert_true(counted(zigzag_of, n) >= 1 - 2 * rows / TOKENS);
    }
}

// ---- timed work

struct pass {
    struct attention a;
    float *out, *lse, *qkv, *kv, *dout, *dq, *dkv;
    bool backward;
};

static void run_block(void *ctx, const struct attention_runs *r)
{
    const struct pass *p = ctx;
    const struct kernels *k = kernels_find(DTYPE_F32);
    if (p->backward)
        k->attention_block_backward(p->dq, p->dkv, p->dout, p->out, p->lse,
                                    p->qkv, p->kv, r, &p->a);
    else
        k->attention_block(p->out, p->lse, p->qkv, p->kv, r, &p->a);
}

// The seconds of worker r's blocks, forward and backward; the median.
static double seconds(struct pass *p, division *divide, int n, int r)
{
    double s[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t start = now_ns();
        p->backward = false;
        each_block(divide, n, r, run_block, p);
        p->backward = true;
        each_block(divide, n, r, run_block, p);
        s[i] = (double)(now_ns() - start) * 1e-9;
    }
    return median(s, ROUNDS);
}

static float *some(size_t n)
{
    float *v = mem_alloc(n, sizeof *v);
    for (size_t i = 0; i < n; i++)
        v[i] = sinf((float)i);
    return v;
}

static int print_times(void)
{
    enum { N = TOKENS * CHANNELS };
    static const struct {
        const char *name;
        division *divide;
    } divisions[] = {{"contiguous", contiguous}, {"zigzag", zigzag_of}};
    struct pass p = {.out = some(N),
                     .lse = some(TOKENS),
                     .qkv = some(3 * N),
                     .kv = some(2 * N),
                     .dout = some(N),
                     .dq = some(N),
                     .dkv = some(2 * N)};
    p.a = (struct attention){.B = 1,
                             .T = TOKENS,
                             .C = CHANNELS,
                             .NH = 1,
                             .mask = {.keep = 1},
                             .scratch =
                                 some(attention_scratch(TOKENS, CHANNELS, 1))};
    omp_set_num_threads(1);
    double most[2] = {0, 0}, n = WORKERS;
    for (int d = 0; d < 2; d++)
        for (int r = 0; r < WORKERS; r++)
            most[d] =
                fmax(most[d], seconds(&p, divisions[d].divide, WORKERS, r));
    printf("cell,workers,law_share,counted_share,timed_share\n");
    for (int d = 0; d < 2; d++)
        printf("%s,%d,%.6g,%.6g,%.6g\n", divisions[d].name, WORKERS,
               d ? 1 : n / (2 * n - 1), counted(divisions[d].divide, WORKERS),
               most[1] / most[d]);
    float *all[] = {p.out,  p.lse, p.qkv, p.kv,
                    p.dout, p.dq,  p.dkv, p.a.scratch};
    for (int i = 0; i < 8; i++)
        mem_free(all[i]);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contiguous_pieces_reach_half_of_the_ideal),
        cmocka_unit_test(the_zigzag_divides_the_work_equally),
    };
    if (argc == 2 && !strcmp(argv[1], "times"))
        return print_times();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
