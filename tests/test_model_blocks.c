// test_model_blocks.c - a model that borrows its blocks one at a time computes
// the same bits as a model that has all of them.

#include "base/base.h"
#include "device/vector.h"
#include "tests/test.h"
#include "tests/tiny_model.h"

#include <string.h>

// It has more layers than are lent at once.
static const struct model_config deep = {
    .layers = 5, .heads = 3, .channels = 24, .context = 13, .vocab = 31};

// Lends copies of a model's blocks. A copy that was given back becomes NaN, so
// that a later read of it shows in the loss.
struct shelf {
    struct model_config config;
    enum dtype format;
    char *weights;    // all, in the model's format
    float *grads;     // all, as they were given back
    bool grads_alone; // lends no weights: the model has its own
    struct model_place lent[16];
    // `taken` layers are lent now, and `most` is the largest value so far
    int taken, most;
    int calls, fails; // calls so far; call number `fails` fails (0: none)
};

static bool is_layer(const struct shelf *s, int b)
{
    return b > 0 && b <= s->config.layers;
}

static int take(void *ctx, int b, bool backward, struct model_place *out)
{
    struct shelf *s = ctx;
    size_t off, n, size = dtype_bytes(s->format);
    if (++s->calls == s->fails)
        return fail("nothing to lend");
    model_block(&s->config, b, &off, &n);
    if (!s->lent[b].weights) {
        s->lent[b].weights = mem_alloc(n, size);
        memcpy(s->lent[b].weights, s->weights + off * size, n * size);
        s->taken += is_layer(s, b);
        s->most = s->taken > s->most ? s->taken : s->most;
    }
    if (backward) {
        assert_null(s->lent[b].grads);
        s->lent[b].grads = mem_alloc(n, sizeof(float));
        memset(s->lent[b].grads, 0xff, n * sizeof(float));
    }
    if (!s->grads_alone)
        out->weights = s->lent[b].weights;
    out->grads = s->lent[b].grads;
    return 0;
}

static int give(void *ctx, int b)
{
    struct shelf *s = ctx;
    struct model_place *p = &s->lent[b];
    size_t off, n;
    model_block(&s->config, b, &off, &n);
    assert_non_null(p->weights);
    if (p->grads)
        memcpy(s->grads + off, p->grads, n * sizeof(float));
    memset(p->weights, 0xff, n * dtype_bytes(s->format));
    mem_free(p->weights);
    mem_free(p->grads);
    *p = (struct model_place){NULL, NULL};
    s->taken -= is_layer(s, b);
    return 0;
}

// A model that borrows its blocks from a shelf with a bench's weights.
struct borrower {
    struct shelf shelf;
    struct model_lender lender;
    struct model *m;
};

static void borrow(struct borrower *w, const struct bench *b, bool grads_alone)
{
    size_t size = dtype_bytes(b->job.precision);
    w->shelf = (struct shelf){.config = b->job.config,
                              .format = b->job.precision,
                              .grads_alone = grads_alone,
                              .weights = mem_alloc(b->n, size),
                              .grads = mem_alloc(b->n, sizeof(float))};
    w->lender =
        (struct model_lender){.take = take, .give = give, .ctx = &w->shelf};
    vector_cast(w->shelf.weights, b->job.precision, b->params, DTYPE_F32, b->n);
    struct model_job job = b->job;
    job.lent_weights = !grads_alone;
    job.params = grads_alone ? job.params : NULL;
    job.lent_grads = true;
    job.grads = NULL;
    job.lender = &w->lender;
    assert_int_equal(model_open(&w->m, &job), 0);
    assert_true(!grads_alone == !model_copy(w->m) ||
                b->job.precision == DTYPE_F32);
}

static void end_borrower(struct borrower *w)
{
    for (int b = 0; b < 16; b++) {
        mem_free(w->shelf.lent[b].weights);
        mem_free(w->shelf.lent[b].grads);
    }
    model_close(&w->m);
    mem_free(w->shelf.weights);
    mem_free(w->shelf.grads);
}

// The test covers every format, with dropout and without. Weights and gradients
// are lent, or only gradients.
static void a_borrowing_model_equals_a_whole_one(void **state)
{
    (void)state;
    for (int k = 0; k < 12; k++) {
        struct model_config c = deep;
        struct borrower w;
        c.dropout = k % 2 ? 0.2f : 0;
        struct bench b = begin(c, (enum dtype)(k / 4), ROWS, TOKENS);
        float loss, want = train(&b), logits[31], wanted[31];
        borrow(&w, &b, k / 2 % 2);
        for (int again = 0; again < 2; again++) {
            assert_int_equal(model_train(w.m, &b.step, &loss), 0);
            assert_true(loss == want);
            assert_memory_equal(w.shelf.grads, b.grads, b.n * sizeof(float));
            assert_int_equal(w.shelf.taken, 0);
            assert_int_equal(w.shelf.most, 2); // this layer and the next
        }
        assert_int_equal(model_eval(b.m, b.x, b.y, 2, &want), 0);
        assert_int_equal(model_eval(w.m, b.x, b.y, 2, &loss), 0);
        assert_true(loss == want);
        assert_int_equal(model_logits(b.m, b.x, 5, wanted), 0);
        assert_int_equal(model_logits(w.m, b.x, 5, logits), 0);
        assert_memory_equal(logits, wanted, sizeof logits);
        for (int i = 0; i < model_nblocks(&c); i++)
            assert_null(w.shelf.lent[i].weights);
        end_borrower(&w);
        end(&b);
    }
}

// If any call of the lender fails, the step fails with its message.
static void a_failing_lender_fails_the_step(void **state)
{
    (void)state;
    struct bench b = begin(deep, DTYPE_F32, ROWS, TOKENS);
    float loss;
    int calls = 1;
    for (int k = 1; k <= calls; k++) {
        struct borrower w;
        borrow(&w, &b, false);
        if (k == 1) {
            assert_int_equal(model_train(w.m, &b.step, &loss), 0);
            calls = w.shelf.calls;
            assert_int_equal(calls, 2 * (5 + 2));
            w.shelf.calls = 0;
        }
        w.shelf.fails = k;
        assert_int_equal(model_train(w.m, &b.step, &loss), -1);
        assert_string_equal(fail_message(), "nothing to lend");
        end_borrower(&w);
    }
    end(&b);
}

// Blocks tile the vector. Weights that are drawn range by range equal those
// that are drawn at once.
static void blocks_tile_the_vector(void **state)
{
    (void)state;
    size_t all = model_nparams(&deep), end = 0, off, n;
    float *whole = mem_alloc(all, sizeof *whole);
    float *ranges = mem_alloc(all, sizeof *ranges);
    struct tensor t;
    for (int b = 0; b < model_nblocks(&deep); b++) {
        model_block(&deep, b, &off, &n);
        assert_int_equal(off, end);
        end = off + n;
        model_tensor(&deep, b == 0 ? 0 : 2 + 12 * (b - 1), &t);
        assert_int_equal(t.off, off);
    }
    assert_int_equal(end, all);
    model_init(&deep, 7, whole);
    for (size_t at = 0; at < all; at += n) {
        n = all - at < 1001 ? all - at : 1001;
        model_init_range(&deep, 7, at, n, ranges + at);
    }
    assert_memory_equal(ranges, whole, all * sizeof *whole);
    mem_free(whole);
    mem_free(ranges);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_borrowing_model_equals_a_whole_one),
        cmocka_unit_test(a_failing_lender_fails_the_step),
        cmocka_unit_test(blocks_tile_the_vector),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
