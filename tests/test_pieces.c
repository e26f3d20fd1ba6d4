// test_pieces.c - workers that divide every sequence compute the same as one:
// the sum of their gradients is as near to double precision as one worker's,
// the dropout masks are the same, and both ways to exchange keys have the same
// bits, also between groups that exchange heads. All have the same work. What
// they exchange is what the law says.
//
// All workers are models in this process, each with a thread of its own.

#include "base/base.h"
#include "model/state.h"
#include "tests/test.h"
#include "tests/truth.h"

#include <float.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

enum { WORKERS = 6, STEPS = 20, LONG = 13 };

// n workers, in groups of `up` that exchange heads.
struct way {
    int n, up;
    enum model_over over;
};

struct passing {
    void *give, *take;
    size_t given, taken, size; // numbers, and bytes of a number
};

struct world {
    pthread_barrier_t barrier;
    int n, up;
    void *at[WORKERS]; // what each worker exchanges now
    struct passing passing[PASSES][WORKERS];
    struct bench *whole;
};

struct worker {
    struct world *world;
    int rank;
    double sent; // bytes
    double work; // scores that were computed, in blocks of STEP queries
    struct kernels counting;
    struct model_pieces pieces;
    struct bench b;
    float loss, eval;
    pthread_t thread;
};

// ---- the exchanges

static void publish(struct worker *m, void *v)
{
    m->world->at[m->rank] = v;
    pthread_barrier_wait(&m->world->barrier);
}

// The worker of group g that has the heads of this one, and worker w of this
// one's group.
static int in_group(const struct worker *m, int g)
{
    return g * m->world->up + m->rank % m->world->up;
}

static int beside(const struct worker *m, int w)
{
    return m->rank - m->rank % m->world->up + w;
}

static size_t offset(const size_t *lengths, int w)
{
    size_t at = 0;
    for (int i = 0; i < w; i++)
        at += lengths[i];
    return at;
}

static int gather(void *ctx, void *v, const size_t *lengths, enum dtype type)
{
    struct worker *m = ctx;
    size_t size = dtype_bytes(type);
    int n = m->world->n / m->world->up, own = m->rank / m->world->up;
    publish(m, v);
    for (int g = 0; g < n; g++) {
        size_t at = offset(lengths, g) * size;
        if (g != own)
            memcpy((char *)v + at, (char *)m->world->at[in_group(m, g)] + at,
                   lengths[g] * size);
        // around a ring a worker sends all chunks but its right neighbour's
        if (g != (own + 1) % n)
            m->sent += (double)(lengths[g] * size);
    }
    pthread_barrier_wait(&m->world->barrier);
    return 0;
}

// In the order of a ring: the worker after the owner first, the owner last.
// Other chunks are spoilt, as a ring may spoil them.
static int scatter(void *ctx, float *v, const size_t *lengths)
{
    struct worker *m = ctx;
    int n = m->world->n / m->world->up, group = m->rank / m->world->up;
    size_t at = offset(lengths, group), own = lengths[group];
    float *sum = mem_alloc(own + 1, sizeof *sum);
    publish(m, v);
    for (int k = 1; k <= n; k++) {
        float *theirs = m->world->at[in_group(m, (group + k) % n)];
        for (size_t i = 0; i < own; i++)
            sum[i] = k == 1 ? theirs[at + i] : sum[i] + theirs[at + i];
    }
    pthread_barrier_wait(&m->world->barrier);
    memset(v, 0xff, offset(lengths, n) * sizeof *v);
    memcpy(v + at, sum, own * sizeof *v);
    for (int g = 0; g < n; g++)
        m->sent += g == group ? 0 : 4.0 * (double)lengths[g];
    mem_free(sum);
    return 0;
}

static int pass(void *ctx, enum model_passes kind, void *give, size_t given,
                void *take, size_t taken, enum dtype type)
{
    struct worker *m = ctx;
    m->world->passing[kind][m->rank] =
        (struct passing){give, take, given, taken, dtype_bytes(type)};
    m->sent += (double)(given * dtype_bytes(type));
    return 0;
}

// Copies as late as possible, so that a buffer that is used too early shows.
static int passed(void *ctx, enum model_passes kind)
{
    struct worker *m = ctx;
    int n = m->world->n / m->world->up, group = m->rank / m->world->up;
    const struct passing *own = &m->world->passing[kind][m->rank];
    const struct passing *left =
        &m->world->passing[kind][in_group(m, (group + n - 1) % n)];
    pthread_barrier_wait(&m->world->barrier);
    assert_int_equal(left->given, own->taken);
    memcpy(own->take, left->give, own->taken * own->size);
    pthread_barrier_wait(&m->world->barrier);
    return 0;
}

// In a group: chunk r of worker w's numbers becomes chunk w of worker r's.
static int exchange(void *ctx, void *give, const size_t *given, void *take,
                    const size_t *taken, enum dtype type)
{
    struct worker *m = ctx;
    size_t size = dtype_bytes(type);
    struct passing *all = m->world->passing[0];
    all[m->rank] = (struct passing){give, (void *)given, 0, 0, size};
    pthread_barrier_wait(&m->world->barrier);
    int own = m->rank % m->world->up;
    for (int w = 0; w < m->world->up; w++) {
        const struct passing *theirs = &all[beside(m, w)];
        const size_t *lengths = theirs->take;
        assert_int_equal(lengths[own], taken[w]);
        memcpy((char *)take + offset(taken, w) * size,
               (char *)theirs->give + offset(lengths, own) * size,
               taken[w] * size);
        m->sent += w == own ? 0 : (double)(given[w] * size);
    }
    pthread_barrier_wait(&m->world->barrier);
    return 0;
}

// ---- counted work

static _Thread_local struct worker *counted;

// The scores that a block computes, strip by strip.
static void count(const struct attention_runs *r, const struct attention *a)
{
    for (int t = 0; t < r->queries.n; t += ATTENTION_STEP)
        counted->work +=
            (double)ATTENTION_STEP * attention_strip_keys(r, t) * a->B * a->NH;
}

static void block(float *out, float *lse, const void *qkv, const void *kv,
                  const struct attention_runs *r, const struct attention *a)
{
    count(r, a);
    kernels_find(DTYPE_F32)->attention_block(out, lse, qkv, kv, r, a);
}

// ---- workers

static void pick(int32_t *own, const int32_t *all, struct zigzag z, int B)
{
    for (int r = 0; r < B * z.own; r++)
        own[r] = all[zigzag_row(&z, (uint64_t)r)];
}

static void open_worker(struct worker *m, enum model_over over)
{
    const struct bench *whole = m->world->whole;
    struct model_job job = whole->job;
    int B = job.batch;
    m->pieces = (struct model_pieces){.n = m->world->n,
                                      .rank = m->rank,
                                      .tokens = job.tokens,
                                      .up = m->world->up,
                                      .over = over,
                                      .gather = gather,
                                      .scatter = scatter,
                                      .pass = pass,
                                      .passed = passed,
                                      .exchange = exchange,
                                      .ctx = m};
    struct zigzag z = zigzag_of(job.tokens, m->world->n, m->rank);
    m->b = *whole;
    m->b.x = mem_alloc((size_t)B * z.own, sizeof(int32_t));
    m->b.y = mem_alloc((size_t)B * z.own, sizeof(int32_t));
    pick(m->b.x, whole->x, z, B);
    pick(m->b.y, whole->y, z, B);
    m->b.step.x = m->b.x;
    m->b.step.y = m->b.y;
    m->b.params = job.params = copy(whole->params, whole->n);
    m->b.grads = job.grads = mem_alloc(whole->n, sizeof(float));
    memset(job.grads, 0xff, whole->n * sizeof(float));
    job.tokens = z.own;
    job.pieces = &m->pieces;
    m->b.job = job;
    assert_int_equal(model_open(&m->b.m, &job), 0);
}

// Runs `body` as each of a way's workers at the same time. The caller calls
// end_workers().
static struct worker *run_workers(struct bench *whole, struct way way,
                                  void *(*body)(void *))
{
    int n = way.n;
    struct world *w = mem_alloc(1, sizeof *w);
    struct worker *all = mem_alloc((size_t)n, sizeof *all);
    *w = (struct world){.n = n, .up = way.up, .whole = whole};
    pthread_barrier_init(&w->barrier, NULL, (unsigned)n);
    for (int r = 0; r < n; r++) {
        all[r].world = w;
        all[r].rank = r;
        open_worker(&all[r], way.over);
    }
    for (int r = 0; r < n; r++)
        assert_int_equal(pthread_create(&all[r].thread, NULL, body, &all[r]),
                         0);
    for (int r = 0; r < n; r++)
        pthread_join(all[r].thread, NULL);
    return all;
}

static void end_workers(struct worker *all)
{
    struct world *w = all->world;
    for (int r = 0; r < w->n; r++)
        end(&all[r].b);
    pthread_barrier_destroy(&w->barrier);
    mem_free(w);
    mem_free(all);
}

static float *summed(const struct worker *all)
{
    float *sum = copy(all->b.grads, all->b.n);
    for (int r = 1; r < all->world->n; r++)
        for (size_t i = 0; i < all->b.n; i++)
            sum[i] += all[r].b.grads[i];
    return sum;
}

// ---- against double precision

static void *train_once(void *arg)
{
    struct worker *m = arg;
    m->loss = train(&m->b);
    m->sent = 0;
    assert_int_equal(model_eval(m->b.m, m->b.x, m->b.y, m->b.job.batch,
                                &m->eval),
                     0);
    return NULL;
}

// The worker's loss, and what `b` and t say of it.
static void check_workers(struct bench *b, const struct truth *t, float loss,
                          struct way way)
{
    int n = way.n;
    struct worker *all = run_workers(b, way, train_once);
    float *grads = summed(all);
    double error = error_of(grads, t), local = error_of(b->grads, t);
    double sum = 0, eval = 0, most = 1.5 * local;
    if (way.up > 1 && way.up < n) // may be a few roundings of a sum
        most = fmax(most, 3 * FLT_EPSILON);
    if (error > most)
        print_error("%d workers by %d, T %d: error %g, one worker's %g\n", n,
                    way.up, b->job.tokens, error, local);
    assert_true(error <= most);
    for (int r = 0; r < n; r++) {
        sum += all[r].loss;
        eval += all[r].eval;
    }
    double bound = 1.5 * fabs(loss - t->loss) + 1e-6 * t->loss;
    assert_true(fabs(sum - t->loss) <= bound);
    assert_true(fabs(eval - sum) <= 1e-6 * sum);
    mem_free(grads);
    end_workers(all);
}

static const struct way ways[] = {{2, 1, OVER_GATHER}, {2, 1, OVER_RING},
                                  {2, 2, OVER_GATHER}, {3, 1, OVER_GATHER},
                                  {3, 1, OVER_RING},   {3, 3, OVER_GATHER},
                                  {4, 1, OVER_GATHER}, {4, 1, OVER_RING},
                                  {4, 4, OVER_GATHER}, {4, 2, OVER_GATHER},
                                  {4, 2, OVER_RING},   {6, 2, OVER_RING},
                                  {6, 3, OVER_GATHER}, {6, 3, OVER_RING}};

// An even and an odd number of tokens, and one below the number of pieces.
static void pieces_are_as_near_to_the_truth(void **state)
{
    (void)state;
    const int tokens[] = {12, 11, 5};
    for (int i = 0; i < 3; i++) {
        struct bench b = begin_odd(DTYPE_F32, tokens[i], false, 0);
        struct truth *t = find_truth(&b);
        end(&b);
        for (int k = 0; k < 6; k++) {
            b = begin_odd((enum dtype)(k / 2), tokens[i], k % 2, 0);
            float loss = train(&b);
            for (size_t w = 0; w < sizeof ways / sizeof *ways; w++)
                if (ways[w].n <= tokens[i])
                    check_workers(&b, t, loss, ways[w]);
            end(&b);
        }
        mem_free(t);
    }
}

// ---- training

static void descend(struct bench *b, const float *grads)
{
    for (size_t i = 0; i < b->n; i++)
        b->params[i] -= 0.05f * grads[i];
    model_params_changed(b->m);
}

// Each step adds up the workers' gradients.
static void *train_long(void *arg)
{
    struct worker *m = arg;
    for (int k = 1; k <= STEPS; k++) {
        m->b.step.step = k;
        train(&m->b);
        publish(m, m->b.grads);
        float *sum = copy(m->world->at[0], m->b.n);
        for (int r = 1; r < m->world->n; r++)
            for (size_t i = 0; i < m->b.n; i++)
                sum[i] += ((float *)m->world->at[r])[i];
        pthread_barrier_wait(&m->world->barrier);
        descend(&m->b, sum);
        mem_free(sum);
    }
    return NULL;
}

// Trains with dropout. The masks must be those of one worker: other masks would
// change the first digits of the parameters. Both ways to exchange keys have
// the same bits.
static void masks_are_those(int k, int n, int up)
{
    struct bench b = begin_odd((enum dtype)(k / 2), LONG, k % 2, 0.1f);
    struct worker *all =
        run_workers(&b, (struct way){n, up, OVER_GATHER}, train_long);
    struct worker *ring =
        run_workers(&b, (struct way){n, up, OVER_RING}, train_long);
    struct worker *heads =
        run_workers(&b, (struct way){n, n, OVER_GATHER}, train_long);
    float *before = copy(b.params, b.n);
    for (int r = 0; r < n; r++)
        assert_memory_equal(ring[r].b.params, all[0].b.params,
                            b.n * sizeof(float));
    for (int step = 1; step <= STEPS; step++) {
        b.step.step = step;
        train(&b);
        descend(&b, b.grads);
    }
    double moved = distance(b.params, before, b.n);
    double apart = distance(all->b.params, b.params, b.n);
    double other = distance(heads->b.params, b.params, b.n);
    apart = other > apart ? other : apart;
    if (apart > (k < 2 ? 1e-5 : 0.05) * moved)
        print_error("format %d: %g apart, moved by %g\n", k / 2, apart, moved);
    assert_true(apart <= (k < 2 ? 1e-5 : 0.05) * moved);
    mem_free(before);
    end_workers(all);
    end_workers(ring);
    end_workers(heads);
    end(&b);
}

static void masks_are_those_of_one_worker(void **state)
{
    (void)state;
    for (int k = 0; k < 6; k++)
        masks_are_those(k, 2 + k % 3, 1);
    for (int k = 0; k < 6; k++)
        masks_are_those(k, 4, 2);
}

// ---- the workers' own losses

// The sum of the workers' losses, with x more of `along` in the parameters.
static double loss_along(struct worker *m, const float *before,
                         const float *along, double x)
{
    double sum = 0;
    for (size_t i = 0; i < m->b.n; i++)
        m->b.params[i] = (float)(before[i] + x * along[i]);
    model_params_changed(m->b.m);
    m->loss = train(&m->b);
    publish(m, &m->loss);
    for (int r = 0; r < m->world->n; r++)
        sum += *(float *)m->world->at[r];
    pthread_barrier_wait(&m->world->barrier);
    return sum;
}

// The gradient's length is the slope of the loss along the gradient, by a
// difference of fourth order. Here with dropout, which the reference has not.
static void *measure_slope(void *arg)
{
    struct worker *m = arg;
    const double h = 0.02;
    m->b.step.step = 3; // selects the masks
    train(&m->b);
    publish(m, m->b.grads);
    float *along = mem_alloc(m->b.n, sizeof *along);
    double squares = 0;
    for (int r = 0; r < m->world->n; r++)
        for (size_t i = 0; i < m->b.n; i++)
            along[i] += ((float *)m->world->at[r])[i];
    pthread_barrier_wait(&m->world->barrier);
    for (size_t i = 0; i < m->b.n; i++)
        squares += (double)along[i] * along[i];
    double length = sqrt(squares);
    for (size_t i = 0; i < m->b.n; i++)
        along[i] /= (float)length;
    float *before = copy(m->b.params, m->b.n);
    double slope = (8 * (loss_along(m, before, along, h) -
                         loss_along(m, before, along, -h)) -
                    loss_along(m, before, along, 2 * h) +
                    loss_along(m, before, along, -2 * h)) /
                   (12 * h);
    if (fabs(slope / length - 1) > 3e-4)
        print_error("slope %g, gradient's length %g\n", slope, length);
    m->loss = fabs(slope / length - 1) <= 3e-4 ? 0 : 1;
    mem_free(before);
    mem_free(along);
    return NULL;
}

static void gradients_are_the_slope_of_the_losses(void **state)
{
    (void)state;
    const struct way some[] = {{3, 1, OVER_GATHER},
                               {3, 1, OVER_RING},
                               {3, 3, OVER_GATHER},
                               {4, 2, OVER_RING}};
    for (int i = 0; i < 4; i++) {
        struct bench b = begin_odd(DTYPE_F32, LONG, i == 1, 0.2f);
        struct worker *all = run_workers(&b, some[i], measure_slope);
        for (int r = 0; r < some[i].n; r++)
            assert_true(all[r].loss == 0);
        end_workers(all);
        end(&b);
    }
}

// ---- work

static void *count_work(void *arg)
{
    struct worker *m = counted = arg;
    m->counting = *m->b.m->k;
    m->counting.attention_block = block;
    m->b.m->k = &m->counting;
    m->loss = train(&m->b);
    m->sent = 0;
    assert_int_equal(model_eval(m->b.m, m->b.x, m->b.y, m->b.job.batch,
                                &m->eval),
                     0);
    m->work /= 2; // of one forward
    return NULL;
}

// A worker's scores are those of its share, but for blocks at the diagonal.
// (test_zigzag.c has contiguous pieces.) Groups of two divide two heads.
static void workers_have_the_same_work(void **state)
{
    (void)state;
    enum { T = 768 }; // each piece has whole strips
    struct model_config c = {
        .layers = 1, .heads = 2, .channels = 16, .context = T, .vocab = 31};
    struct bench b = begin(c, DTYPE_F32, 1, T);
    b.job.threads = 1;
    const struct way some[] = {{2, 1, OVER_RING},
                               {3, 1, OVER_RING},
                               {4, 1, OVER_RING},
                               {4, 2, OVER_RING}};
    for (int i = 0; i < 4; i++) {
        int n = some[i].n;
        struct worker *all = run_workers(&b, some[i], count_work);
        for (int r = 0; r < n; r++) {
            double scores = T * (T + 1.0) / n;
            double diagonal = (double)ATTENTION_STEP * T / n;
            assert_true(fabs(all[r].work - scores) <= diagonal);
            assert_true(fabs(all[r].work - all[0].work) <=
                        2 * ATTENTION_STEP * ATTENTION_STEP);
        }
        end_workers(all);
    }
    end(&b);
}

// Numbers of q, k, v and of results that a layer's forward sends in groups, for
// each sequence: of this worker's tokens those of others' heads, and of others'
// tokens those of its heads.
static double of_heads(const struct worker *m)
{
    int up = m->world->up, H = m->b.job.config.heads,
        D = m->b.job.config.channels / H;
    int heads = H / up + (m->rank % up < H % up), own = m->b.job.tokens;
    int group = 0;
    for (int w = 0; w < up; w++)
        group += zigzag_of(LONG, m->world->n, beside(m, w)).own;
    return D * (3.0 * own * (H - heads) + (double)heads * (group - own));
}

// What an evaluation sends: keys and values, to all other groups, and heads.
static void keys_travel_once(void **state)
{
    (void)state;
    const struct way some[] = {{3, 1, OVER_GATHER},
                               {3, 1, OVER_RING},
                               {4, 2, OVER_GATHER},
                               {6, 3, OVER_RING}};
    for (int k = 0; k < 8; k++) {
        struct way way = some[k % 4];
        struct bench b = begin_odd(k / 4 ? DTYPE_BF16 : DTYPE_F32, LONG, 0, 0);
        double N = ROWS * LONG, C = b.job.config.channels, sent = 0;
        double law = (way.n / way.up - 1) * 2 * N * C;
        struct worker *all = run_workers(&b, way, train_once);
        for (int r = 0; r < way.n; r++) {
            sent += all[r].sent;
            law += ROWS * of_heads(&all[r]);
        }
        assert_true(sent == ODD_LAYERS * law * (k / 4 ? 2 : 4));
        end_workers(all);
        end(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_as_near_to_the_truth),
        cmocka_unit_test(masks_are_those_of_one_worker),
        cmocka_unit_test(gradients_are_the_slope_of_the_losses),
        cmocka_unit_test(workers_have_the_same_work),
        cmocka_unit_test(keys_travel_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
