// grade.c - lab 8: the tests of top-k with error feedback.
//
// To judge the choice of entries, the tests compare the entries that were sent
// with those that were kept. To judge sums, they choose gradients whose entries
// are known, and add these.

#include "labs/08-topk/topk.h"

#include "labs/check.h"
#include "labs/term.h"

#include "base/rng.h"

#include <math.h>
#include <string.h>

enum { MOST_WORKERS = 8, MOST_HIDDEN = 20 };

static bool equal(float a, float b)
{
    return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

// ---- topk_pack() alone

struct pack {
    size_t n, k;
    float *g, *owed, *sum; // sum: gradient plus owed before
    struct entry *out;
    bool *sent;
};

static struct pack *pack_of(struct lab_case *k, size_t n, size_t most)
{
    struct pack *p = lab_memory(k, 1, sizeof *p);
    if (!p)
        return NULL;
    *p = (struct pack){.n = n,
                       .k = most,
                       .g = lab_memory(k, n, sizeof *p->g),
                       .owed = lab_memory(k, n, sizeof *p->owed),
                       .sum = lab_memory(k, n, sizeof *p->sum),
                       .out = lab_memory(k, most, sizeof *p->out),
                       .sent = lab_memory(k, n, sizeof *p->sent)};
    return p->g && p->owed && p->sum && p->out && p->sent ? p : NULL;
}

// Calls topk_pack(), and notes the k entries sent, which must have different
// indices.
static bool packed(struct lab_case *k, struct pack *p)
{
    for (size_t i = 0; i < p->n; i++) {
        p->sum[i] = p->owed[i] + p->g[i];
        p->sent[i] = false;
    }
    for (size_t m = 0; m < p->k; m++)
        p->out[m] = (struct entry){UINT32_MAX, NAN};
    topk_pack(p->g, p->owed, p->n, p->k, p->out);
    for (size_t m = 0; m < p->k; m++) {
        uint32_t i = p->out[m].index;
        if (!lab_want(k, i < p->n && !p->sent[i],
                      "n = %zu, k = %zu: entry %zu has index %u, which is %s",
                      p->n, p->k, m, i,
                      i < p->n ? "used twice" : "not below n"))
            return false;
        p->sent[i] = true;
        if (!lab_want(k, equal(p->out[m].value, p->sum[i]),
                      "n = %zu, k = %zu: element %u is sent as %.9g, gradient "
                      "plus owed is %.9g",
                      p->n, p->k, i, (double)p->out[m].value,
                      (double)p->sum[i]))
            return false;
    }
    return true;
}

static void want_owed(struct lab_case *k, const struct pack *p)
{
    for (size_t i = 0; i < p->n; i++)
        lab_want(k, equal(p->owed[i], p->sent[i] ? 0 : p->sum[i]),
                 "n = %zu, k = %zu: element %zu was %s, and %.9g is owed; "
                 "gradient plus owed was %.9g",
                 p->n, p->k, i, p->sent[i] ? "sent" : "not sent",
                 (double)p->owed[i], (double)p->sum[i]);
}

// Gradients are about 2^exponent.
static void want_conserved(struct lab_case *k, size_t n, size_t most,
                           uint64_t steps, int exponent)
{
    struct pack *p = pack_of(k, n, most);
    for (uint64_t step = 0; p && step < steps && !lab_failed(k); step++) {
        for (size_t i = 0; i < n; i++)
            p->g[i] = ldexpf((float)rng_normal(rng_key(8, step), i), exponent);
        if (packed(k, p))
            want_owed(k, p);
    }
}

static void conserve(struct lab_case *k)
{
    static const size_t sizes[][2] = {{1, 1}, {5, 5}, {10, 1}, {1000, 37}};
    for (int s = 0; s < 4; s++)
        want_conserved(k, sizes[s][0], sizes[s][1], 5, 0);
    for (int i = 0; i < 3 && lab_hidden(k); i++)
        want_conserved(k, lab_pick(k, 1001, 9000), lab_pick(k, 1, 200), 6,
                       80 * (i - 1));
    if (lab_hidden(k)) // 20 bits are too short for an index
        want_conserved(k, lab_pick(k, 1050000, 1200000), lab_pick(k, 300, 400),
                       1, 0);
    if (lab_hidden(k)) { // all are sent
        size_t n = lab_pick(k, 1001, 2000);
        want_conserved(k, n, n, 2, 0);
    }
}

// Whether the contract sends x at i rather than y at j, if they are equal in
// magnitude. NaN has no sign here.
static bool tie_goes_first(float x, size_t i, float y, size_t j)
{
    bool high = LAB_TIES == 1, signs = LAB_TIES > 1;
    if (signs && (double)x * (double)y < 0)
        return LAB_TIES == 2 ? x > 0 : x < 0;
    return high ? i > j : i < j;
}

// Whether the contract sends x at i rather than y at j. An infinity counts less
// than NaN.
static bool goes_first(float x, size_t i, float y, size_t j)
{
    double p = isnan(x) ? HUGE_VAL : fmin(fabs((double)x), 1e300);
    double q = isnan(y) ? HUGE_VAL : fmin(fabs((double)y), 1e300);
    return p > q || (p == q && tie_goes_first(x, i, y, j));
}

// No entry that was kept should have gone before an entry that was sent.
static void want_largest(struct lab_case *k, const struct pack *p)
{
    size_t last = p->n; // the sent entry that goes last; n: none yet
    for (size_t i = 0; i < p->n; i++)
        if (p->sent[i] &&
            (last == p->n || goes_first(p->sum[last], last, p->sum[i], i)))
            last = i;
    for (size_t j = 0; j < p->n && last < p->n; j++)
        lab_want(k, p->sent[j] || !goes_first(p->sum[j], j, p->sum[last], last),
                 "n = %zu, k = %zu: %g at %zu is sent, and %g at %zu is not",
                 p->n, p->k, (double)p->sum[last], last, (double)p->sum[j], j);
}

// Many have equal magnitudes.
static float with_ties(uint64_t seed, size_t i)
{
    return (float)floor(5 * rng_normal(rng_key(9, seed), i)) / 2;
}

// Hidden case number i: tiny and huge numbers, whose squares no float holds;
// infinities beside NaN; more entries than numbers that are not 0.
static void want_hidden_pick(struct lab_case *k, int i)
{
    size_t n = lab_pick(k, 100, 2000);
    struct pack *p = pack_of(k, n, i == 2 ? n / 20 : lab_pick(k, 9, n / 2));
    for (size_t e = 0; p && e < n; e++) {
        size_t drawn = lab_draw(k, e, 40);
        float x = ldexpf(with_ties(n, e), i < 2 ? 100 - 200 * i : 0);
        p->g[e] = i != 2       ? x
                  : drawn == 0 ? NAN
                  : drawn < 3  ? INFINITY
                  : drawn < 5  ? -INFINITY
                               : x;
        if (i == 3 && drawn > 2)
            p->g[e] = 0;
    }
    if (p && packed(k, p)) {
        want_largest(k, p);
        want_owed(k, p);
    }
}

static void pick(struct lab_case *k)
{
    for (int i = 0; i < 4 && lab_hidden(k) && !lab_failed(k); i++)
        want_hidden_pick(k, i);
    for (uint64_t seed = 0; seed < 40; seed++) {
        size_t n = 1 + (size_t)(seed * 7 % 60);
        bool odd = seed % 4 == 3 && n > 1;
        size_t most = 1 + (size_t)seed % n;
        struct pack *p = pack_of(k, n, odd && most == 1 ? 2 : most);
        for (size_t i = 0; p && i < n; i++)
            p->g[i] = with_ties(seed, i);
        if (p && odd) {
            p->g[n / 2] = NAN;
            p->g[n - 1 - n / 2] += 100;
            if (seed % 8 == 7) // more NaNs than entries sent
                for (size_t i = 0; i < n && i <= p->k; i++)
                    p->g[i] = NAN;
        }
        if (!p || !packed(k, p))
            return;
        want_largest(k, p);
        want_owed(k, p); // also if entries are equal
    }
}

// ---- on the cluster

struct job {
    struct lab_world world;
    size_t n, k;
    float odd; // a number of worker 1; 0: none
    struct {
        float *g, *owed, *sum;
    } of[MOST_HIDDEN];
};

// The network of all public cases.
static struct job usual(int w, size_t n, size_t most)
{
    return (struct job){.world = {.workers = w,
                                  .alpha_s = 20e-6,
                                  .bytes_per_s = 1.25e8},
                        .n = n,
                        .k = most};
}

// A hidden case of any test.
static struct job hidden_job(const struct lab_case *k)
{
    return (struct job){.world = lab_drawn(k, (int)lab_pick(k, 9, MOST_HIDDEN)),
                        .n = lab_pick(k, 500, 4000),
                        .k = lab_pick(k, 1, 400)};
}

// Only k elements of each worker are not 0, so exactly these must be picked.
// Some of their indices are the same on several workers.
static void fill(const struct job *j, int rank)
{
    for (size_t m = 0; m < j->k; m++) {
        size_t i = (m * (size_t)(3 + rank) + (size_t)rank) % j->n;
        while (j->of[rank].g[i] != 0)
            i = (i + 1) % j->n;
        float x = (float)rng_normal(rng_key(10, (uint64_t)rank), m);
        j->of[rank].g[i] = m == 0 && rank == 1 && j->odd != 0 ? j->odd
                           : x == 0                           ? 1
                                                              : x;
    }
}

static int body(struct lab *l, void *arg)
{
    struct job *j = arg;
    int r = l->rank;
    return lab_exchange(l, j->of[r].g, j->of[r].owed, j->of[r].sum, j->n, j->k);
}

// Runs an exchange. Returns NULL if the test has failed.
static const struct lab_run *ran(struct lab_case *k, struct job *j)
{
    for (int r = 0; r < j->world.workers && !lab_failed(k); r++) {
        j->of[r].g = lab_memory(k, j->n, sizeof(float));
        j->of[r].owed = lab_memory(k, j->n, sizeof(float));
        j->of[r].sum = lab_memory(k, j->n, sizeof(float));
        if (lab_failed(k))
            return NULL;
        for (size_t i = 0; i < j->n; i++) // old contents must not matter
            j->of[r].sum[i] = i % 3 == 0 ? NAN : i % 3 == 1 ? INFINITY : -7;
        fill(j, r);
    }
    const struct lab_run *run =
        lab_failed(k) ? NULL : lab_virtual(k, &j->world, body, j);
    return lab_clean(k, run) ? run : NULL;
}

static const size_t sizes[][2] = {{8, 8}, {50, 3}, {1000, 10}, {1000, 100}};

enum { SIZES = sizeof sizes / sizeof *sizes };

// Compares all sums with those in the contract's order. far: by how much a
// number may differ, relative to the magnitudes that it adds.
static void want_sums(struct lab_case *k, const struct job *j, float far)
{
    int w = j->world.workers;
    for (size_t i = 0; i < j->n && !lab_failed(k); i++) {
        float sum = 0, size = 0;
        for (int m = 0; m < w; m++) {
            float x = j->of[lab_at(LAB_SUM_ORDER, m, w)].g[i];
            sum += x;
            size += fabsf(x);
        }
        if (LAB_MEAN)
            sum /= (float)(LAB_MEAN * w);
        for (int r = 0; r < w; r++) {
            float is = j->of[r].sum[i];
            lab_want(k, equal(is, sum) || fabsf(is - sum) < far * size,
                     "%d workers, n = %zu, k = %zu: sum[%zu] of worker %d is "
                     "%.9g; in the contract's order and form it is %.9g",
                     w, j->n, j->k, i, r, (double)is, (double)sum);
        }
    }
}

static void want_bytes(struct lab_case *k, struct job j)
{
    const struct lab_run *run = ran(k, &j);
    int w = j.world.workers;
    for (int r = 0; run && r < w; r++) {
        size_t law = 8 * j.k * (size_t)(w - 1);
        size_t out = (size_t)run->v->rank[r].bytes_out;
        size_t in = (size_t)run->v->rank[r].bytes_in;
        lab_record(k, w, j.n, "bytes_out", (double)out);
        lab_want(k, out == law && in == law,
                 "%d workers, n = %zu, k = %zu: worker %d sent %zu bytes and "
                 "received %zu, 8k(w-1) is %zu",
                 w, j.n, j.k, r, out, in, law);
    }
    if (run)
        want_sums(k, &j, 1e-5f);
}

static void bytes(struct lab_case *k)
{
    for (int w = 1; w <= MOST_WORKERS; w++)
        for (int s = 0; s < SIZES; s++)
            want_bytes(k, usual(w, sizes[s][0], sizes[s][1]));
    for (int i = 0; i < 3 && lab_hidden(k); i++)
        want_bytes(k, hidden_job(k));
}

static void want_replicas(struct lab_case *k, struct job j)
{
    if (ran(k, &j))
        want_sums(k, &j, 0);
}

static void replicas(struct lab_case *k)
{
    static const float odd[] = {0, NAN, INFINITY};
    for (int w = 1; w <= MOST_WORKERS; w++)
        for (int s = 0; s < SIZES; s++)
            want_replicas(k, usual(w, sizes[s][0], sizes[s][1]));
    for (int i = 0; i < 3 && lab_hidden(k); i++) {
        struct job j = hidden_job(k);
        j.odd = odd[i];
        want_replicas(k, j);
    }
    if (lab_hidden(k))
        want_replicas(k, usual(3, lab_pick(k, 70000, 90000), 200));
}

static void want_time(struct lab_case *k, struct job j)
{
    const struct lab_run *run = ran(k, &j);
    int w = j.world.workers;
    if (!run)
        return;
    double each = (double)j.k * 8 / j.world.bytes_per_s;
    double law = (w - 1) * (j.world.alpha_s + each);
    lab_record(k, w, j.k, "seconds", run->v->seconds);
    lab_speed(k, run->v->seconds, law,
              "%d workers, k = %zu: took %.1f us, (w-1)(a + 8k/B) is %.1f us",
              w, j.k, run->v->seconds * 1e6, law * 1e6);
    want_sums(k, &j, 1e-5f);
}

static void in_time(struct lab_case *k)
{
    for (int w = 2; w <= MOST_WORKERS; w++)
        for (size_t most = 10; most <= 1000; most *= 10)
            want_time(k, usual(w, 1000, most));
    for (int i = 0; i < 3 && lab_hidden(k); i++)
        want_time(k, hidden_job(k));
}

// ---- a model to train: each worker's loss is a quadratic function with its
// own minimum

enum { PARAMETERS = 400, STEPS = 200, TRAINERS = 4 };

struct training {
    size_t k;
    float p[TRAINERS][PARAMETERS];
};

static float steepness(size_t i)
{
    return 0.5f + (float)rng_uniform(rng_key(11, 0), i);
}

static float middle(int rank, size_t i)
{
    return (float)rng_normal(rng_key(12, 0), i) +
           (float)rng_normal(rng_key(12, 1 + (uint64_t)rank), i) / 4;
}

static float slope(const float *p, int rank, size_t i)
{
    return steepness(i) * (p[i] - middle(rank, i));
}

static double loss_of(const float *p)
{
    double loss = 0;
    for (int r = 0; r < TRAINERS; r++)
        for (size_t i = 0; i < PARAMETERS; i++) {
            double far = (double)(p[i] - middle(r, i));
            loss += (double)steepness(i) * far * far / 2 / TRAINERS;
        }
    return loss;
}

static int train(struct lab *l, void *arg)
{
    struct training *t = arg;
    float *p = t->p[l->rank];
    float g[PARAMETERS], owed[PARAMETERS] = {0}, sum[PARAMETERS];
    for (int step = 0; step < STEPS; step++) {
        for (size_t i = 0; i < PARAMETERS; i++)
            g[i] = slope(p, l->rank, i);
        if (lab_exchange(l, g, owed, sum, PARAMETERS, t->k))
            return -1;
        for (size_t i = 0; i < PARAMETERS; i++)
            p[i] -= 0.05f * sum[i] * (LAB_MEAN ? LAB_MEAN : 1.f / TRAINERS);
        lab_release(l);
    }
    return 0;
}

static double dense(void)
{
    float p[PARAMETERS] = {0};
    for (int step = 0; step < STEPS; step++)
        for (size_t i = 0; i < PARAMETERS; i++) {
            float sum = 0;
            for (int r = 0; r < TRAINERS; r++)
                sum += slope(p, r, i);
            p[i] -= 0.05f * sum / TRAINERS;
        }
    return loss_of(p);
}

static void want_loss(struct lab_case *k, size_t most, double best)
{
    struct lab_world world = {.workers = TRAINERS};
    struct training *t = lab_failed(k) ? NULL : lab_memory(k, 1, sizeof *t);
    if (!t)
        return;
    t->k = most;
    if (!lab_clean(k, lab_virtual(k, &world, train, t)))
        return;
    double is = loss_of(t->p[0]);
    lab_record(k, TRAINERS, most, "loss", is);
    if (most >= PARAMETERS / 20)
        lab_want(k, is <= best * 1.02,
                 "k = %zu of %d: the loss after %d steps is %.4g, dense steps "
                 "end at %.4g",
                 most, PARAMETERS, STEPS, is, best);
}

static void loss(struct lab_case *k)
{
    static const size_t ks[] = {4, 10, 20, 40, 400};
    double best = dense();
    for (int a = 0; a < 5; a++)
        want_loss(k, ks[a], best);
    if (lab_hidden(k))
        want_loss(k, lab_pick(k, PARAMETERS / 20, PARAMETERS / 2), best);
}

static const struct lab_test tests[] = {
    {"conserve", 15, conserve, NULL,
     "Add the gradient to what is owed first. Then what is sent is not owed "
     "any more, and the rest stays."},
    {"pick", 15, pick, "conserve",
     "-5 has a larger magnitude than 3. Which of two equal magnitudes is sent? "
     "Is NaN > x ever true?"},
    {"bytes", 10, bytes, NULL,
     "Every worker sends its k entries to every other worker, once."},
    {"replicas", 15, replicas, "bytes",
     "Two workers may send the same index. Add worker 0's entries first, on "
     "every worker."},
    {"loss", 10, loss, "replicas",
     "Elements stay owed from step to step: the caller keeps the array."},
    {"time", 5, in_time, "replicas",
     "A worker can send to one worker and receive from another at the same "
     "time."},
    {NULL, 0, NULL, NULL, NULL},
};

const struct lab_about lab_about = {
    .number = 8,
    .name = "send less",
    .file = "topk.c",
    .functions = "topk_pack lab_exchange",
    .floor = 15,
    .tests = tests,
};
