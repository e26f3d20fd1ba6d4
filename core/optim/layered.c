// layered.c - LARS and LAMB, tensor by tensor.

#include "optim/layered.h"

#include "device/vector.h"
#include "optim/segment.h"

#include <math.h>

// A tensor, and the constants of its update.
struct layer {
    float *p, *m, *v; // LARS: m is the velocity, NULL without momentum
    const float *g;
    size_t n;
    float lr, decay, scale, momentum, correct1, correct2, eps;
};

bool layered_is(const struct optim_config *c)
{
    return c->kind == OPTIM_LARS || c->kind == OPTIM_LAMB;
}

static size_t block_len(size_t n, size_t at)
{
    return n - at < RULE_BLOCK ? n - at : RULE_BLOCK;
}

static double norm(const float *v, size_t n, double *sums)
{
#pragma omp parallel for schedule(static)
    for (size_t at = 0; at < n; at += RULE_BLOCK)
        sums[at / RULE_BLOCK] = optim_sum_squares(v + at, block_len(n, at));
    return sqrt(segment_norm(sums, segment_blocks(n)));
}

// ---- LAMB

// r of the elements [at, at + n).
static void direction(const struct layer *l, size_t at, size_t n, float *r)
{
    for (size_t i = 0; i < n; i++) {
        float root = sqrtf(l->v[at + i] * l->correct2) + l->eps;
        r[i] = l->m[at + i] * l->correct1 / root + l->decay * l->p[at + i];
    }
}

static double direction_norm(const struct layer *l, double *sums)
{
#pragma omp parallel for schedule(static)
    for (size_t at = 0; at < l->n; at += RULE_BLOCK) {
        float r[RULE_BLOCK];
        size_t n = block_len(l->n, at);
        direction(l, at, n, r);
        sums[at / RULE_BLOCK] = optim_sum_squares(r, n);
    }
    return sqrt(segment_norm(sums, segment_blocks(l->n)));
}

static void lamb(const struct layer *l, double *sums)
{
    double params = norm(l->p, l->n, sums), step = direction_norm(l, sums);
    float rate =
        params > 0 && step > 0 ? (float)(l->lr * params / step) : l->lr;
#pragma omp parallel for schedule(static)
    for (size_t at = 0; at < l->n; at += RULE_BLOCK) {
        float r[RULE_BLOCK];
        size_t n = block_len(l->n, at);
        direction(l, at, n, r);
        for (size_t i = 0; i < n; i++)
            l->p[at + i] -= rate * r[i];
    }
}

// ---- LARS

static void lars(const struct layer *l, double *sums)
{
    double params = norm(l->p, l->n, sums);
    double grads = norm(l->g, l->n, sums) * l->scale;
    float trust = params > 0 && grads > 0
                      ? (float)(params / (grads + l->decay * params))
                      : 1;
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < l->n; i++) {
        float u = trust * (l->scale * l->g[i] + l->decay * l->p[i]);
        if (l->m)
            u = l->m[i] = l->momentum * l->m[i] + u;
        l->p[i] -= l->lr * u;
    }
}

// ---- the whole vector

// Updates elements [off, off + n) as AdamW or SGD.
static void plain(const struct optim_config *c, float *params,
                  float *const *slots, const float *grads, size_t off, size_t n,
                  int step, float lr, float scale)
{
    float *own[OPTIM_MAX_SLOTS];
    for (int i = 0; i < OPTIM_MAX_SLOTS; i++)
        own[i] = slots[i] ? slots[i] + off : NULL;
    optim_update(c, params + off, own, grads + off, off, n, step, lr, scale);
}

void layered_update(const struct optim_config *c, float *params,
                    float *const *slots, const float *grads, size_t n,
                    const struct rule_in *in, float scale, double *sums)
{
    size_t at = 0;
    for (uint32_t k = 0; k < c->ndecay; k++) {
        size_t off = (size_t)c->decay[k].off, len = (size_t)c->decay[k].n;
        struct layer l = {
            .p = params + off,
            .m = slots[0] ? slots[0] + off : NULL,
            .v = slots[1] ? slots[1] + off : NULL,
            .g = grads + off,
            .n = len,
            .lr = in->lr,
            .decay = c->weight_decay,
            .scale = scale,
            .momentum = c->momentum,
            .correct1 = (float)(1 / (1 - pow((double)c->beta1, in->step))),
            .correct2 = (float)(1 / (1 - pow((double)c->beta2, in->step))),
            .eps = c->eps,
        };
        plain(c, params, slots, grads, at, off - at, in->step, in->lr, scale);
        if (c->kind == OPTIM_LAMB) { // with a rate of 0 only m and v change
            plain(c, params, slots, grads, off, len, in->step, 0, scale);
            lamb(&l, sums);
        } else {
            lars(&l, sums);
        }
        at = off + len;
    }
    plain(c, params, slots, grads, at, n - at, in->step, in->lr, scale);
    if (in->copy)
        vector_cast(in->copy->at, in->copy->format, params, DTYPE_F32, n);
}
