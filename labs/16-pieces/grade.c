// grade.c - lab 16: the tests of attention over divided sequences.
//
// Pieces are judged by the tokens in them, and a worker's work by its scores.
// expected.h has the expected numbers.

#include "labs/16-pieces/pieces.h"

#include "labs/16-pieces/expected.h"
#include "labs/check.h"

#include "base/rng.h"

#include <math.h>
#include <string.h>

enum { MOST_WORKERS = 8, MOST_HIDDEN = 16 };

// ---- pieces

static void want_cut(struct lab_case *k, size_t tokens, int w)
{
    for (int i = 0; i < 2 * w && !lab_failed(k); i++) {
        struct piece is;
        size_t at = first(tokens, w, i), n = length(tokens, w, i);
        piece_cut(tokens, w, i, &is);
        lab_want(k, is.first == at && is.n == n,
                 "%zu tokens, %d workers: piece %d begins with token %zu and "
                 "has %zu, not with %zu and %zu",
                 tokens, w, i, is.first, is.n, at, n);
    }
}

static void cut(struct lab_case *k)
{
    for (int w = 1; w <= MOST_WORKERS; w++)
        for (size_t n = 0; n < 20000; n += n < 36 ? 1 : n / 2)
            want_cut(k, n, w);
    for (int i = 0; i < 3 && lab_hidden(k); i++) {
        int w = (int)lab_pick(k, 9, 32);
        want_cut(k, lab_pick(k, 0, 2 * (size_t)w), w);
        want_cut(k, lab_pick(k, 70000, 1 << 20), w);
    }
    if (lab_hidden(k)) // 32 bits do not count so many, nor does a float
        want_cut(k, ((size_t)1 << 40) + lab_pick(k, 1, 1 << 20), 7);
}

// What the student's function says that each worker has. Returns whether each
// piece has one worker.
static bool want_held(struct lab_case *k, int w, int held[][2])
{
    int owner[2 * MOST_HIDDEN];
    memset(owner, 0xff, sizeof owner);
    for (int r = 0; r < w && !lab_failed(k); r++) {
        piece_held(w, r, held[r]);
        int a = held[r][0], b = held[r][1];
        lab_want(k, a == its(w, r, 0),
                 "%d workers: the first piece of worker %d is %d, not %d", w, r,
                 a, its(w, r, 0));
        if (!lab_want(k, b >= w && b < 2 * w,
                      "%d workers: the second piece of worker %d is %d, which "
                      "is not in the second half, %d to %d",
                      w, r, b, w, 2 * w - 1))
            return false;
        lab_want(k, owner[b] < 0, "%d workers: workers %d and %d have piece %d",
                 w, owner[b], r, b);
        owner[b] = r;
    }
    return !lab_failed(k);
}

static void held(struct lab_case *k)
{
    int pieces[MOST_HIDDEN][2];
    for (int w = 1; w <= MOST_WORKERS; w++)
        want_held(k, w, pieces);
    if (lab_hidden(k))
        want_held(k, (int)lab_pick(k, 9, MOST_HIDDEN), pieces);
}

static void want_balance(struct lab_case *k, size_t tokens, int w)
{
    int has[MOST_HIDDEN][2], busy = 0, idle = 0;
    size_t work[MOST_HIDDEN] = {0};
    if (!want_held(k, w, has))
        return;
    for (int r = 0; r < w; r++) {
        work[r] = scores(tokens, w, has[r][0]) + scores(tokens, w, has[r][1]);
        busy = work[r] > work[busy] ? r : busy;
        idle = work[r] < work[idle] ? r : idle;
    }
    double mean = (double)tokens * ((double)tokens + 1) / 2 / w;
    size_t last = scores(tokens, w, 2 * w - 2) + scores(tokens, w, 2 * w - 1);
    lab_record(k, w, tokens, "share_of_ideal", mean / (double)work[busy]);
    lab_record(k, w, tokens, "contiguous_share", mean / (double)last);
    lab_want(k, work[busy] - work[idle] <= 2 * tokens,
             "%zu tokens, %d workers: worker %d has pieces %d and %d, %zu "
             "scores, and worker %d has pieces %d and %d, %zu: they differ by "
             "%zu, not by at most %zu",
             tokens, w, busy, has[busy][0], has[busy][1], work[busy], idle,
             has[idle][0], has[idle][1], work[idle], work[busy] - work[idle],
             2 * tokens);
}

// With so many tokens any two workers that have exchanged pieces are found.
static void balance(struct lab_case *k)
{
    for (int w = 1; w <= MOST_WORKERS; w++)
        for (size_t tokens = 960; tokens <= 1000; tokens += 40)
            want_balance(k, tokens, w);
    for (int i = 0; i < 2 && lab_hidden(k); i++)
        want_balance(k, lab_pick(k, 2000, 40000),
                     i ? MOST_HIDDEN : (int)lab_pick(k, 9, MOST_HIDDEN));
}

// ---- blocks

static void want_blocks(struct lab_case *k, size_t tokens, int w, int rank,
                        int step)
{
    struct block b[4];
    bool there[2][2] = {{false}};
    int from = (rank + w - step) % w;
    int n = piece_blocks(tokens, w, rank, step, b);
    char where[80];
    snprintf(where, sizeof where, "%zu tokens, %d workers, step %d, worker %d",
             tokens, w, step, rank);
    if (!lab_want(k, n >= 0 && n <= 4, "%s: %d blocks, not 0 to 4", where, n))
        return;
    for (int i = 0; i < n; i++) {
        int q = b[i].query == its(w, rank, 1), y = b[i].key == its(w, from, 1);
        bool same = b[i].query == b[i].key;
        if (!lab_want(k,
                      b[i].query == its(w, rank, q) &&
                          b[i].key == its(w, from, y),
                      "%s: queries %d, keys %d: it has queries %d and %d, and "
                      "the keys %d and %d of worker %d",
                      where, b[i].query, b[i].key, its(w, rank, 0),
                      its(w, rank, 1), its(w, from, 0), its(w, from, 1), from))
            return;
        lab_want(k, sees(tokens, w, b[i].query, b[i].key),
                 "%s: the %zu queries of piece %d see none of the %zu keys of "
                 "piece %d",
                 where, length(tokens, w, b[i].query), b[i].query,
                 length(tokens, w, b[i].key), b[i].key);
        lab_want(k, b[i].masked == same && !there[q][y],
                 "%s: the queries of piece %d and the keys of piece %d are %s",
                 where, b[i].query, b[i].key,
                 there[q][y] ? "there twice"
                 : same      ? "not masked"
                             : "masked");
        there[q][y] = true;
    }
    for (int i = 0; i < 4; i++) {
        int query = its(w, rank, i / 2), key = its(w, from, i % 2);
        lab_want(k, there[i / 2][i % 2] || !sees(tokens, w, query, key),
                 "%s: the queries of piece %d lack the keys of piece %d", where,
                 query, key);
    }
}

static void every_block(struct lab_case *k, size_t tokens, int w)
{
    for (int i = 0; i < w * w && !lab_failed(k); i++)
        want_blocks(k, tokens, w, i / w, i % w);
}

static void blocks(struct lab_case *k)
{
    for (int w = 1; w <= MOST_WORKERS; w++)
        for (size_t tokens = 0; tokens < 70; tokens += 1 + tokens / 2)
            every_block(k, tokens, w);
    for (int i = 0; i < 2 && lab_hidden(k); i++) {
        int w = i ? MOST_HIDDEN : (int)lab_pick(k, 9, MOST_HIDDEN - 1);
        every_block(k, lab_pick(k, 1, 2 * (size_t)w - 1), w);
        every_block(k, lab_pick(k, 70000, 1 << 20), w);
    }
    if (lab_hidden(k)) // a multiple of 2^32 a piece
        every_block(k, (size_t)10 << 32, 5);
}

// ---- partial results

// Compares number i of a vector; `scale` is that of its rounding errors.
static void want_number(struct lab_case *k, const char *where, const char *name,
                        size_t i, double is, double ought, double scale)
{
    bool close = isfinite(ought) && fabs(is - ought) <= 3e-5 * scale + 1e-37;
    lab_want(k, close || is == ought, "%s: %s[%zu] is %.9g, not %.9g", where,
             name, i, is, ought);
}

static struct partial partial_of(struct lab_case *k, size_t rows, size_t width)
{
    return (struct partial){rows, width, lab_memory(k, rows + 1, sizeof(float)),
                            lab_memory(k, rows + 1, sizeof(float)),
                            lab_memory(k, rows * width + 1, sizeof(float))};
}

// A result whose maxima are about `spread`. Number `name` of several ones has
// in every fifth row the maximum of the others. Of two with `unseen`, each has
// rows that have seen no key, some of which are so in both.
static void fill(struct partial *p, uint64_t name, double spread, bool unseen)
{
    uint64_t key = rng_key(p->rows, name), same = rng_key(p->rows, 99);
    for (size_t i = 0; i < p->rows; i++) {
        bool none = unseen && (i % 4 == 3 || i % 4 == 1 + name % 2);
        double max = rng_normal(i % 5 ? key : same, i) * spread;
        p->max[i] = none ? -INFINITY : (float)max;
        p->sum[i] = none ? 0 : 1 + 40 * (float)rng_uniform(key, 1000000 + i);
        for (size_t c = i * p->width; c < (i + 1) * p->width; c++)
            p->out[c] =
                none ? 0 : p->sum[i] * (float)rng_normal(key, 2000000 + c);
    }
}

// e^(max - most), also if no key was seen.
static double factor(float max, float most)
{
    return max > -INFINITY ? exp((double)max - (double)most) : 0;
}

// Merges one into all, which is equal to `was`.
static void want_merge(struct lab_case *k, struct partial *all,
                       const struct partial *was, const struct partial *one)
{
    size_t width = all->width;
    piece_merge(all, one);
    for (size_t i = 0; i < all->rows && !lab_failed(k); i++) {
        float a = was->max[i], b = one->max[i], most = a > b ? a : b;
        double x = factor(a, most), y = factor(b, most);
        double sum = x * (double)was->sum[i] + y * (double)one->sum[i];
        char where[160];
        snprintf(where, sizeof where,
                 "%zu rows, width %zu, row %zu, maxima %g and %g, sums %g and "
                 "%g",
                 all->rows, width, i, (double)a, (double)b, (double)was->sum[i],
                 (double)one->sum[i]);
        want_number(k, where, "max", i, (double)all->max[i], (double)most, 0);
        want_number(k, where, "sum", i, (double)all->sum[i], sum, sum);
        for (size_t c = i * width; c < (i + 1) * width; c++) {
            double old = x * (double)was->out[c], new = y *(double)one->out[c];
            want_number(k, where, "out", c, (double)all->out[c], old + new,
                        fabs(old) + fabs(new));
        }
    }
}

// Merges some results, one after the other; of many rows only two.
static void want_merges(struct lab_case *k, size_t rows, size_t width,
                        double spread, bool unseen)
{
    struct partial all = partial_of(k, rows, width);
    struct partial was = partial_of(k, rows, width);
    struct partial one = partial_of(k, rows, width);
    if (lab_failed(k))
        return;
    fill(&all, 0, spread, unseen);
    for (uint64_t i = 1; i < (rows > 1000 ? 2 : 4) && !lab_failed(k); i++) {
        memcpy(was.max, all.max, rows * sizeof(float));
        memcpy(was.sum, all.sum, rows * sizeof(float));
        memcpy(was.out, all.out, rows * width * sizeof(float));
        fill(&one, i, spread, unseen);
        want_merge(k, &all, &was, &one);
    }
}

// Merges in all sizes; hidden ones beyond 2^8 and 2^16.
static void every_merge(struct lab_case *k, bool unseen)
{
    static const double spreads[] = {1, 30, 2000};
    for (int s = 0; s < 3; s++) {
        want_merges(k, 0, 4, spreads[s], unseen);
        want_merges(k, 1, 1, spreads[s], unseen);
        want_merges(k, 23, 6, spreads[s], unseen);
    }
    if (lab_hidden(k))
        want_merges(k, lab_pick(k, 260, 500), lab_pick(k, 20, 70), 1e-3,
                    unseen);
    if (lab_hidden(k))
        want_merges(k, lab_pick(k, 66000, 70000), 1, 10, unseen);
    if (lab_hidden(k)) // differences of which e^x is 0, and infinite ones
        want_merges(k, 64, lab_pick(k, 260, 300), 5e37, unseen);
}

static void merge(struct lab_case *k)
{
    every_merge(k, false);
}

static void masked(struct lab_case *k)
{
    every_merge(k, true);
}

static void want_finish(struct lab_case *k, size_t rows, size_t width,
                        double spread)
{
    struct partial p = partial_of(k, rows, width);
    struct partial is = partial_of(k, rows, width);
    if (lab_failed(k))
        return;
    fill(&p, 1, spread, true);
    piece_finish(&p, is.out, is.sum);
    for (size_t i = 0; i < rows && !lab_failed(k); i++) {
        double max = (double)p.max[i], sum = (double)p.sum[i];
        double lse = logarithm(max + log(sum));
        char where[120];
        snprintf(where, sizeof where,
                 "%zu rows, width %zu, row %zu, max %g, sum %g", rows, width, i,
                 max, sum);
        want_number(k, where, "lse", i, (double)is.sum[i], lse, 1 + fabs(lse));
        for (size_t c = i * width; c < (i + 1) * width; c++) {
            double out = sum > 0 ? (double)p.out[c] / sum : 0;
            want_number(k, where, "out", c, (double)is.out[c], out, fabs(out));
        }
    }
}

static void finish(struct lab_case *k)
{
    want_finish(k, 1, 1, 1);
    want_finish(k, 23, 6, 1);
    want_finish(k, 40, 3, 100);
    if (lab_hidden(k))
        want_finish(k, lab_pick(k, 260, 500), lab_pick(k, 20, 70), 1e-3);
    if (lab_hidden(k))
        want_finish(k, lab_pick(k, 66000, 70000), 1, 1e6);
}

// ---- attention

enum { Q, K, V, OUT, LSE, VECTORS };

// A sequence, the expected attention, and what each worker has.
struct job {
    struct sequence s[MOST_HIDDEN];
    float *whole[OUT], *of[MOST_HIDDEN][VECTORS];
    double *out, *lse;
};

static struct job *job_open(struct lab_case *k, int w, size_t tokens,
                            size_t width, float unit)
{
    size_t n = tokens * width;
    struct job *j = lab_memory(k, 1, sizeof *j);
    for (int v = 0; j && v < OUT; v++)
        j->whole[v] = lab_memory(k, n + 1, sizeof(float));
    for (int i = 0; j && i < w * VECTORS; i++)
        j->of[i / VECTORS][i % VECTORS] =
            lab_memory(k, owned(tokens, w, i / VECTORS) * width + 1,
                       sizeof(float));
    if (!j || !(j->out = lab_memory(k, n + 1, sizeof(double))) ||
        !(j->lse = lab_memory(k, tokens + 1, sizeof(double))) || lab_failed(k))
        return NULL;
    for (size_t i = 0; i < n; i++) { // exact; token 0 has e^score near 0
        j->whole[Q][i] = (i < width ? 2 : (float)rng_below(1, i, 5) - 2) * unit;
        j->whole[K][i] = i < width ? -2 : (float)rng_below(2, i, 5) - 2;
        j->whole[V][i] = (float)rng_normal(3, i);
    }
    for (size_t t = 0; t < tokens; t++)
        j->lse[t] = attention_of(j->whole[Q], j->whole[K], j->whole[V], t,
                                 width, j->out + t * width);
    for (int r = 0; r < w; r++) {
        j->s[r] = (struct sequence){tokens, width, owned(tokens, w, r)};
        for (size_t i = 0; i < OUT * j->s[r].own; i++)
            memcpy(j->of[r][i % OUT] + i / OUT * width,
                   j->whole[i % OUT] + token(tokens, w, r, i / OUT) * width,
                   width * sizeof(float));
    }
    return j;
}

static int body(struct lab *l, void *arg)
{
    struct job *j = arg;
    float **of = j->of[l->rank];
    return piece_attention(l, &j->s[l->rank], of[Q], of[K], of[V], of[OUT],
                           of[LSE]);
}

// Checks the attention of all workers. Returns NULL if the test has failed.
static const struct lab_run *want_attention(struct lab_case *k,
                                            struct lab_world world,
                                            size_t tokens, size_t width,
                                            float unit)
{
    int w = world.workers;
    struct job *j = lab_failed(k) ? NULL : job_open(k, w, tokens, width, unit);
    const struct lab_run *run = j ? lab_virtual(k, &world, body, j) : NULL;
    if (!lab_clean(k, run))
        return NULL;
    for (int r = 0; r < w; r++)
        for (size_t i = 0; i < j->s[r].own && !lab_failed(k); i++) {
            size_t t = token(tokens, w, r, i);
            double lse = j->lse[t];
            char where[120];
            snprintf(where, sizeof where,
                     "%zu tokens, width %zu, %d workers, worker %d, token %zu",
                     tokens, width, w, r, t);
            for (size_t c = 0; c < width; c++)
                want_number(k, where, "out", i * width + c,
                            (double)j->of[r][OUT][i * width + c],
                            j->out[t * width + c], 3);
            want_number(k, where, "lse", i, (double)j->of[r][LSE][i], lse,
                        3 + fabs(lse));
        }
    return lab_failed(k) ? NULL : run;
}

// The cluster of a hidden case number i of any test.
static struct lab_world hidden_world(const struct lab_case *k, int i)
{
    return lab_drawn(k, i ? MOST_HIDDEN : (int)lab_pick(k, 9, MOST_HIDDEN - 1));
}

static void attention(struct lab_case *k)
{
    static const size_t sizes[][2] = {{1, 3}, {5, 4}, {12, 1}, {33, 8}};
    for (int w = 1; w <= 6; w++)
        for (int s = 0; s < 4; s++)
            want_attention(k, (struct lab_world){.workers = w}, sizes[s][0],
                           sizes[s][1], 16);
    for (int i = 0; i < 2 && lab_hidden(k); i++)
        want_attention(k, hidden_world(k, i), lab_pick(k, 34, 150),
                       lab_pick(k, 9, 40), i ? 32 : 1);
    if (lab_hidden(k)) // a byte does not count so many
        want_attention(k, (struct lab_world){.workers = 2},
                       lab_pick(k, 1030, 1200), 3, 1);
    if (lab_hidden(k))
        want_attention(k, hidden_world(k, 0), 9, lab_pick(k, 260, 300), 1);
}

// Each worker passes on all keys and values but those of its right neighbour.
static void want_bytes(struct lab_case *k, struct lab_world world,
                       size_t tokens, size_t width)
{
    int w = world.workers;
    const struct lab_run *run = want_attention(k, world, tokens, width, 1);
    for (int r = 0; run && r < w; r++) {
        size_t out = (size_t)run->v->rank[r].bytes_out;
        size_t in = (size_t)run->v->rank[r].bytes_in;
        size_t sent = 8 * width * (tokens - owned(tokens, w, (r + 1) % w));
        size_t came = 8 * width * (tokens - owned(tokens, w, r));
        lab_record(k, w, tokens, "bytes", (double)out);
        lab_want(k, out == sent && in == came,
                 "%zu tokens, width %zu, %d workers: worker %d sent %zu bytes "
                 "and received %zu, not %zu and %zu",
                 tokens, width, w, r, out, in, sent, came);
    }
    for (size_t i = 0; run && i < run->v->n_messages; i++) {
        const struct virtual_message *m = &run->v->messages[i];
        lab_want(k, m->to == (m->from + 1) % w,
                 "%zu tokens, %d workers: worker %d sends %zu bytes to worker "
                 "%d, which is not its right neighbour",
                 tokens, w, m->from, m->bytes, m->to);
    }
}

static void bytes(struct lab_case *k)
{
    for (int w = 1; w <= MOST_WORKERS; w++)
        want_bytes(k, (struct lab_world){.workers = w}, 45, 5);
    for (int i = 0; i < 2 && lab_hidden(k); i++)
        want_bytes(k, hidden_world(k, i), lab_pick(k, 5, 90),
                   lab_pick(k, 2, 20));
}

static const struct lab_test tests[] = {
    {"cut", 10, cut, NULL,
     "Where does piece k begin? How many longer pieces are before it?"},
    {"held", 5, held, NULL,
     "Write the numbers of all pieces below each other."},
    {"balance", 5, balance, "held",
     "The later a piece begins, the more keys its queries see. Which second "
     "piece makes up for a first one that begins early?"},
    {"blocks", 15, blocks, "balance",
     "Whose keys are here? Compare each of your pieces with each of theirs."},
    {"merge", 10, merge, NULL,
     "Both sums must be relative to the same maximum before they are added."},
    {"masked", 5, masked, "merge", "What is -INFINITY - -INFINITY?"},
    {"finish", 5, finish, NULL,
     "The sum of e^score is e^max times the sum of e^(score - max)."},
    {"attention", 10, attention, "masked",
     "Begin with one worker, then try two: which block is wrong?"},
    {"bytes", 5, bytes, "attention",
     "After the last step nobody needs the keys any more."},
    {NULL, 0, NULL, NULL, NULL},
};

const struct lab_about lab_about = {
    .number = 16,
    .name = "sequences in pieces",
    .file = "pieces.c",
    .functions = "piece_cut piece_held piece_blocks piece_merge piece_finish "
                 "piece_attention",
    .floor = 5,
    .tests = tests,
};
