// optim.c - AdamW and SGD over a range of the flat vector, in one pass.
//
// The range is split where decay begins or ends, so that the inner loops have
// no branch: each call of update_*() has one weight decay. The result of an
// element depends on that element alone, so any division among threads or
// servers gives the same bits.

#include "optim/optim.h"

#include "base/base.h"
#include "base/clones.h"

#include <math.h>

static bool is_adam(uint32_t kind)
{
    return kind == OPTIM_ADAMW || kind == OPTIM_LAMB;
}

int optim_slots_of(uint32_t kind, float momentum)
{
    return is_adam(kind) ? 2 : momentum > 0;
}

int optim_slots(const struct optim_config *c)
{
    return optim_slots_of(c->kind, c->momentum);
}

const char *optim_slot_name(const struct optim_config *c, int i)
{
    CHECK(i >= 0 && i < optim_slots(c));
    if (!is_adam(c->kind))
        return "momentum_buffer";
    return i ? "exp_avg_sq" : "exp_avg";
}

struct optim_rates optim_rates_of(const struct optim_config *c, int step,
                                  float lr, float scale)
{
    CHECK(step >= 1);
    return (struct optim_rates){
        .lr = lr,
        .decay = c->weight_decay,
        .scale = scale,
        .beta1 = c->beta1,
        .beta2 = c->beta2,
        .eps = c->eps,
        .momentum = c->momentum,
        .correct1 = (float)(1 / (1 - pow((double)c->beta1, step))),
        .correct2 = (float)(1 / (1 - pow((double)c->beta2, step))),
    };
}

VECTOR_CLONES
static void update_adamw(float *restrict p, float *restrict m,
                         float *restrict v, const float *restrict grads,
                         size_t n, struct optim_rates r)
{
#pragma omp simd
    for (size_t i = 0; i < n; i++) {
        float g = r.scale * grads[i];
        float mi = m[i] + (1.0f - r.beta1) * (g - m[i]);
        float vi = r.beta2 * v[i] + (1.0f - r.beta2) * g * g;
        float step = mi * r.correct1 / (sqrtf(vi * r.correct2) + r.eps);
        m[i] = mi;
        v[i] = vi;
        p[i] -= r.lr * (step + r.decay * p[i]);
    }
}

VECTOR_CLONES
static void update_frozen(float *restrict p, float *restrict m,
                          const float *restrict v,
                          const float *restrict moments, size_t n,
                          struct optim_rates r)
{
#pragma omp simd
    for (size_t i = 0; i < n; i++) {
        float root = sqrtf(v[i]);
        float mi = root > r.eps ? r.scale * moments[i] : 0;
        m[i] = mi;
        p[i] -= r.lr * (mi / (root + r.eps) + r.decay * p[i]);
    }
}

VECTOR_CLONES
static void update_momentum(float *restrict p, float *restrict u,
                            const float *restrict grads, size_t n,
                            struct optim_rates r)
{
#pragma omp simd
    for (size_t i = 0; i < n; i++) {
        u[i] = r.momentum * u[i] + r.scale * grads[i];
        p[i] -= r.lr * (u[i] + r.decay * p[i]);
    }
}

VECTOR_CLONES
static void update_sgd(float *restrict p, const float *restrict grads, size_t n,
                       struct optim_rates r)
{
#pragma omp simd
    for (size_t i = 0; i < n; i++)
        p[i] -= r.lr * (r.scale * grads[i] + r.decay * p[i]);
}

static void update_run(const struct optim_config *c, float *params,
                       float *const *slots, const float *grads, size_t at,
                       size_t n, struct optim_rates r)
{
    if (r.frozen)
        update_frozen(params + at, slots[0] + at, slots[1] + at, grads + at, n,
                      r);
    else if (is_adam(c->kind))
        update_adamw(params + at, slots[0] + at, slots[1] + at, grads + at, n,
                     r);
    else if (c->momentum > 0)
        update_momentum(params + at, slots[0] + at, grads + at, n, r);
    else
        update_sgd(params + at, grads + at, n, r);
}

static void update_ranges(const struct optim_config *c, float *params,
                          float *const *slots, const float *grads, size_t off,
                          size_t n, struct optim_rates r)
{
    size_t at = off, end = off + n;
    for (uint32_t k = 0; at < end; k++) {
        bool last = k == c->ndecay;
        size_t from = last ? end : (size_t)c->decay[k].off;
        size_t to = last ? end : from + (size_t)c->decay[k].n;
        if (to <= at)
            continue;
        if (from > end)
            from = end;
        if (to > end)
            to = end;
        if (from > at) {
            r.decay = 0;
            update_run(c, params, slots, grads, at - off, from - at, r);
            at = from;
        }
        if (to > at) {
            r.decay = c->weight_decay;
            update_run(c, params, slots, grads, at - off, to - at, r);
            at = to;
        }
    }
}

void optim_update(const struct optim_config *c, float *params,
                  float *const *slots, const float *grads, size_t off, size_t n,
                  int step, float lr, float scale)
{
    update_ranges(c, params, slots, grads, off, n,
                  optim_rates_of(c, step, lr, scale));
}

void optim_update_frozen(const struct optim_config *c, float *params,
                         float *const *slots, const float *moments, size_t off,
                         size_t n, float lr, float scale)
{
    CHECK(c->kind == OPTIM_ADAMW);
    const struct optim_rates r = {.lr = lr,
                                  .scale = scale,
                                  .eps = c->eps,
                                  .frozen = true};
    update_ranges(c, params, slots, moments, off, n, r);
}

// Computes sixteen partial sums in double, then adds them. Sixteen are enough
// for vector code. The order of additions is the same with every instruction
// set.
VECTOR_CLONES
double optim_sum_squares(const float *g, size_t n)
{
    enum { LANES = 16 };
    double part[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++)
            part[k] += (double)g[i + k] * g[i + k];
    for (; i < n; i++)
        part[i % LANES] += (double)g[i] * g[i];
    double sum = 0;
    for (int k = 0; k < LANES; k++)
        sum += part[k];
    return sum;
}

float optim_clip_scale(double sum_squares, float grad_scale, float clip,
                       float *norm)
{
    double scaled = sqrt(sum_squares) * (double)grad_scale;
    *norm = (float)scaled;
    if (clip > 0 && scaled > clip)
        return (float)(grad_scale * (clip / (scaled + 1e-6)));
    return grad_scale;
}
