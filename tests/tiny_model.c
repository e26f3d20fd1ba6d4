// tiny_model.c - a GPT-2 of two layers, its weights, tokens and memory.

#include "tests/tiny_model.h"

#include "base/base.h"
#include "base/rng.h"
#include "tests/test.h"

#include <math.h>
#include <string.h>

const struct model_config tiny = {
    .layers = 2, .heads = 3, .channels = 24, .context = 16, .vocab = 29};

// Draws weights so large that no gradient is near zero. Biases and LayerNorm's
// weights differ from their initial values.
static void draw_weights(struct bench *b)
{
    model_init(&b->job.config, 5, b->params);
    for (size_t i = 0; i < b->n; i++)
        b->params[i] += 0.3f * (float)(rng_uniform(9, i) - 0.5);
}

struct bench begin(struct model_config c, enum dtype precision, int B, int T)
{
    struct bench b = {.n = model_nparams(&c)};
    size_t rows = (size_t)B * T;
    b.params = mem_alloc(b.n, sizeof(float));
    b.grads = mem_alloc(b.n, sizeof(float));
    b.x = mem_alloc(rows, sizeof(int32_t));
    b.y = mem_alloc(rows, sizeof(int32_t));
    b.job = (struct model_job){.config = c,
                               .precision = precision,
                               .batch = B,
                               .tokens = T,
                               .threads = 2,
                               .train = true,
                               .params = b.params,
                               .grads = b.grads,
                               .seed = 3};
    draw_weights(&b);
    for (size_t i = 0; i < rows; i++) {
        b.x[i] = (int32_t)rng_below(1, i, c.vocab);
        b.y[i] = (int32_t)rng_below(2, i, c.vocab);
    }
    b.step = (struct model_step){.x = b.x, .y = b.y, .scale = 1};
    assert_int_equal(model_open(&b.m, &b.job), 0);
    return b;
}

void end(struct bench *b)
{
    model_close(&b->m);
    assert_null(b->m);
    mem_free(b->params);
    mem_free(b->grads);
    mem_free(b->x);
    mem_free(b->y);
}

float train(struct bench *b)
{
    float loss;
    assert_int_equal(model_train(b->m, &b->step, &loss), 0);
    return loss;
}

float *copy(const float *x, size_t n)
{
    float *out = mem_alloc(n, sizeof *out);
    memcpy(out, x, n * sizeof *out);
    return out;
}

double distance(const float *got, const float *want, size_t n)
{
    double diff = 0, norm = 0;
    for (size_t i = 0; i < n; i++) {
        diff += pow((double)got[i] - want[i], 2);
        norm += pow(want[i], 2);
    }
    return sqrt(diff / norm);
}
