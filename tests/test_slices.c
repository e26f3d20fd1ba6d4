// test_slices.c - a model in slices computes the same as the whole model: its
// gradients are as near to double precision as the whole model's, and its
// dropout masks are the same. Tensors that all slices have stay bit-identical.
// The number of exchanges is that of the law. All this is so with whole rows
// between the products, and with divided ones, with and without kept inputs of
// the products (model_slices.sequence, keeps).
//
// All slices are models in this process (slice_members.h). No size divides
// evenly.

#include "base/base.h"
#include "model/part.h"
#include "sync/law_mesh.h"
#include "tests/slice_members.h"
#include "tests/test.h"
#include "tests/truth.h"

#include <math.h>
#include <string.h>

enum { SLICES = MEMBERS, STEPS = 20 };

// ---- what a slice is

static int count_once(void *ctx, size_t off, size_t n, size_t at)
{
    (void)off;
    for (size_t i = at; i < at + n; i++)
        ((uint8_t *)ctx)[i]++;
    return 0;
}

struct compare {
    const float *own, *all;
    size_t off;
};

static int same_bits(void *ctx, size_t off, size_t n, size_t at)
{
    struct compare *k = ctx;
    assert_true(off == k->off);
    assert_memory_equal(k->own + off, k->all + at, n * sizeof(float));
    k->off = off + n;
    return 0;
}

static void check_tiles(int stages, int slices, const float *all,
                        uint8_t *count)
{
    size_t n = model_nparams(&odd);
    memset(count, 0, n);
    for (int k = 0; k < stages * slices; k++) {
        struct model_config stage, c;
        assert_int_equal(part_cut(&odd, stages, k / slices, 1, NULL, &stage),
                         0);
        assert_int_equal(part_slice(stages > 1 ? &stage : &odd, slices,
                                    k % slices, &c),
                         0);
        size_t mine = model_nparams(&c);
        float *own = mem_alloc(mine, sizeof *own);
        struct compare same = {own, all, 0};
        model_init(&c, 9, own);
        part_ranges(&c, 0, mine, same_bits, &same);
        assert_true(same.off == mine);
        for (size_t at = 0; at < mine; at += 100) // also piece by piece
            part_counted_ranges(&c, at, mine - at < 100 ? mine - at : 100,
                                count_once, count);
        mem_free(own);
    }
    for (size_t i = 0; i < n; i++)
        assert_int_equal(count[i], 1);
}

// Over all parts, each element counts once and has the initial value that it
// has in the whole model.
static void slices_tile_the_model(void **state)
{
    (void)state;
    size_t n = model_nparams(&odd);
    float *all = mem_alloc(n, sizeof *all);
    uint8_t *count = mem_alloc(n, 1);
    model_init(&odd, 9, all);
    for (int stages = 1; stages <= ODD_LAYERS; stages++)
        for (int slices = 1; slices <= odd.heads; slices++)
            check_tiles(stages, slices, all, count);
    mem_free(all);
    mem_free(count);
    struct model_config c;
    assert_int_equal(part_slice(&odd, 6, 0, &c), -1);
    assert_non_null(strstr(fail_message(), "5 heads"));
}

// ---- against double precision

static void *train_once(void *arg)
{
    struct member *m = arg;
    m->loss = train(&m->b);
    assert_int_equal(model_eval(m->b.m, m->b.x, m->b.y, ROWS, &m->eval), 0);
    return NULL;
}

static void *train_rows(void *arg)
{
    struct member *m = arg;
    m->loss = train(&m->b);
    return NULL;
}

// A member has made the exchanges that the law says: `steps` times those of
// forward and backward, and `evals` times those of an evaluation.
static void check_exchanges(const struct member *m, int steps, int evals)
{
    const struct law_mesh l = {.stages = 1,
                               .layers = ODD_LAYERS,
                               .slices = m->world->n,
                               .recompute = m->b.job.recompute,
                               .sequence =
                                   m->slices.sequence + m->slices.keeps};
    int joins = law_mesh_joins(&l, false), rows = law_mesh_gathers(&l, false);
    assert_int_equal(m->joins, steps * (joins + law_mesh_joins(&l, true)) +
                                   evals * joins);
    // an evaluation gathers the head's input, too
    assert_int_equal(m->gathers, steps * (rows + law_mesh_gathers(&l, true)) +
                                     evals * (rows + (l.sequence > 0)));
    assert_int_equal(m->norms, steps * law_mesh_norms(&l, true));
}

static void check_truth(int sequence)
{
    struct bench b = begin_odd(DTYPE_F32, TOKENS, false, 0);
    struct truth *t = find_truth(&b);
    end(&b);
    for (int k = 0; k < 6; k++) {
        bool again = k % 2;
        b = begin_odd((enum dtype)(k / 2), TOKENS, again, 0);
        float loss = train(&b), eval;
        double local = error_of(b.grads, t);
        assert_int_equal(model_eval(b.m, b.x, b.y, ROWS, &eval), 0);
        for (int slices = 2; slices <= SLICES; slices++) {
            struct member *all = run_slices(&b, slices, sequence, train_once);
            float *grads = assembled(all, true);
            double error = error_of(grads, t);
            if (error > 1.5 * local)
                print_error("%d slices: error %g, the whole's %g\n", slices,
                            error, local);
            assert_true(error <= 1.5 * local);
            for (int r = 0; r < slices; r++) {
                assert_true(all[r].loss == all[0].loss);
                assert_true(all[r].eval == all[0].eval);
                check_exchanges(&all[r], 1, 1);
            }
            double bound = 1.5 * fabs(loss - t->loss) + 1e-6 * t->loss;
            assert_true(fabs(all->loss - t->loss) <= bound);
            assert_true(fabs(all->eval - all->loss) <= 1e-6 * all->loss);
            mem_free(grads);
            end_slices(all);
        }
        end(&b);
    }
    mem_free(t);
}

static void slices_are_as_near_to_the_truth(void **state)
{
    (void)state;
    check_truth(0);
}

static void slices_of_rows_are_as_near(void **state)
{
    (void)state;
    check_truth(1);
    check_truth(2);
}

// Two tokens in four slices: two slices have no row of the residual stream.
static void a_slice_may_have_no_rows(void **state)
{
    (void)state;
    struct model_config c = odd;
    struct bench b = begin(c, DTYPE_F32, 1, 2);
    float loss = train(&b);
    struct member *all = run_slices(&b, SLICES, 1, train_rows);
    float *grads = assembled(all, true);
    assert_true(fabsf(all->loss - loss) <= 1e-6f * loss);
    assert_true(distance(grads, b.grads, b.n) <= 1e-5);
    mem_free(grads);
    end_slices(all);
    end(&b);
}

// ---- training

static void descend(struct bench *b, int step)
{
    b->step.step = step;
    train(b);
    for (size_t i = 0; i < b->n; i++)
        b->params[i] -= 0.05f * b->grads[i];
    model_params_changed(b->m);
}

static void *train_long(void *arg)
{
    struct member *m = arg;
    for (int k = 1; k <= STEPS; k++)
        descend(&m->b, k);
    return NULL;
}

// Returns tensor i of a member. *n is its length, or 0 if the tensor is sliced.
static const float *replicated(const struct member *m, int i, size_t *n)
{
    struct tensor here, whole;
    model_tensor(&m->b.job.config, i, &here);
    model_tensor(&odd, i, &whole);
    *n = here.n == whole.n ? here.n : 0;
    return m->b.params + here.off;
}

// Trains with dropout. The masks must be those of the whole model: other masks
// would change the first digits of the parameters.
static void check_bits(int sequence)
{
    for (int k = 0; k < 6; k++) {
        struct bench b = begin_odd((enum dtype)(k / 2), TOKENS, k % 2, 0.1f);
        struct member *all = run_slices(&b, 2 + k % 3, sequence, train_long);
        int count = 0;
        for (int i = 0; i < model_ntensors(&odd); i++)
            for (int r = 1; r < all->world->n; r++) {
                size_t n;
                const float *first = replicated(&all[0], i, &n);
                assert_memory_equal(replicated(&all[r], i, &n), first,
                                    n * sizeof *first);
                count += r == 1 && n;
            }
        assert_int_equal(count, 1 + 6 * ODD_LAYERS + 2); // wpe, ln, biases
        check_exchanges(all, STEPS, 0);
        float *params = assembled(all, false), *before = copy(b.params, b.n);
        for (int step = 1; step <= STEPS; step++)
            descend(&b, step);
        double moved = distance(b.params, before, b.n);
        double apart = distance(params, b.params, b.n);
        if (apart > (k < 2 ? 1e-5 : 0.05) * moved)
            print_error("format %d: %g apart, moved by %g\n", k / 2, apart,
                        moved);
        assert_true(apart <= (k < 2 ? 1e-5 : 0.05) * moved);
        mem_free(before);
        mem_free(params);
        end_slices(all);
        end(&b);
    }
}

static void replicas_stay_equal_to_the_bit(void **state)
{
    (void)state;
    check_bits(0);
}

static void slices_of_rows_stay_equal(void **state)
{
    (void)state;
    check_bits(1);
    check_bits(2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices_tile_the_model),
        cmocka_unit_test(slices_are_as_near_to_the_truth),
        cmocka_unit_test(slices_of_rows_are_as_near),
        cmocka_unit_test(a_slice_may_have_no_rows),
        cmocka_unit_test(replicas_stay_equal_to_the_bit),
        cmocka_unit_test(slices_of_rows_stay_equal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
