// truth.c - what truth.h promises.

#include "tests/truth.h"

#include "base/base.h"
#include "base/rng.h"
#include "tests/reference_gpt2.h"
#include "tests/test.h"

#include <math.h>

const struct model_config odd = {.layers = ODD_LAYERS,
                                 .heads = 5,
                                 .channels = 35,
                                 .context = 13,
                                 .vocab = 31};

struct bench begin_odd(enum dtype format, int tokens, bool recompute,
                       float drop)
{
    struct model_config c = odd;
    c.dropout = drop;
    struct bench b = begin(c, format, ROWS, tokens);
    model_close(&b.m);
    for (size_t i = 0; i < b.n; i++)
        b.params[i] = (float)((int)lrintf(b.params[i] * 128)) / 128;
    b.job.threads = 1;
    b.job.recompute = recompute;
    assert_int_equal(model_open(&b.m, &b.job), 0);
    return b;
}

static double reference(const struct bench *b, const double *params)
{
    return ref_gpt2(&b->job.config, params, b->x, b->y, b->job.batch,
                    b->job.tokens, NULL);
}

struct truth *find_truth(const struct bench *b)
{
    static const double factor[] = {1, -8, 8, -1};
    struct truth *t = mem_alloc(1, sizeof *t);
    double *params = mem_alloc(b->n, sizeof *params), h = 1e-3;
    for (size_t i = 0; i < b->n; i++)
        params[i] = b->params[i];
    t->loss = reference(b, params);
    for (int k = 0; k < TENSORS * SAMPLES; k++) {
        struct tensor tensor;
        model_tensor(&b->job.config, k / SAMPLES, &tensor);
        size_t at = tensor.off + rng_below(20, (uint64_t)k, tensor.n);
        double keep = params[at], sum = 0;
        for (int i = 0; i < 4; i++) {
            params[at] = keep + (i < 2 ? i - 2 : i - 1) * h;
            sum += factor[i] * reference(b, params);
        }
        params[at] = keep;
        t->at[k] = at;
        t->slope[k] = sum / (12 * h);
    }
    mem_free(params);
    return t;
}

double error_of(const float *grads, const struct truth *t)
{
    double diff = 0, norm = 0;
    for (int k = 0; k < TENSORS * SAMPLES; k++) {
        diff += pow(grads[t->at[k]] - t->slope[k], 2);
        norm += pow(t->slope[k], 2);
    }
    return sqrt(diff / norm);
}
