// rule_cpu.c - updates a vector in host memory: all of it as one segment, or as
// much as there is state in memory (optim/offload.h).
//
// With LARS and LAMB, for training with large batches, the length of a step in
// a tensor follows from the norm of the tensor:
//
//     LARS  a = |p| / (|g| + wd |p|);  u = mu u + a (g + wd p);  p = p - lr u
//           (You, Gitman, Ginsburg, "Large Batch Training of Convolutional
//           Networks", 2017; lr contains the paper's trust coefficient, and
//           stands outside the velocity, as in PyTorch's SGD)
//     LAMB  r = m^ / (sqrt(v^) + eps) + wd p;  p = p - lr |p| / |r| r
//           (You et al., "Large Batch Optimization for Deep Learning", ICLR
//           2020; m, v as AdamW's)
//
// A tensor is a range of optim_config.decay, so it is a matrix. All other
// elements (biases, LayerNorms) have a = 1, or |p| / |r| = 1, and no decay. So
// have tensors with a norm of 0.

#include "optim/rule.h"

#include "base/base.h"
#include "device/vector.h"
#include "optim/offload.h"
#include "optim/segment.h"

#include <math.h>

// ---- LARS and LAMB

// A tensor, and the constants of its update.
struct layer {
    float *p, *m, *v; // LARS: m is the velocity, NULL without momentum
    const float *g;
    size_t n;
    struct optim_rates r;
};

static double norm(const float *v, size_t n, double *sums)
{
    segment_squares(v, 0, n, NULL, sums);
    return sqrt(segment_norm(sums, segment_blocks(n)));
}

// r of the elements [at, at + n).
static void direction(const struct layer *l, size_t at, size_t n, float *r)
{
    for (size_t i = 0; i < n; i++) {
        float root = sqrtf(l->v[at + i] * l->r.correct2) + l->r.eps;
        r[i] = l->m[at + i] * l->r.correct1 / root + l->r.decay * l->p[at + i];
    }
}

static double direction_norm(const struct layer *l, double *sums)
{
#pragma omp parallel for schedule(static)
    for (size_t at = 0; at < l->n; at += RULE_BLOCK) {
        float r[RULE_BLOCK];
        size_t n = segment_piece(l->n, at, RULE_BLOCK);
        direction(l, at, n, r);
        sums[at / RULE_BLOCK] = optim_sum_squares(r, n);
    }
    return sqrt(segment_norm(sums, segment_blocks(l->n)));
}

static void lamb(const struct layer *l, double *sums)
{
    double params = norm(l->p, l->n, sums), step = direction_norm(l, sums);
    float rate =
        params > 0 && step > 0 ? (float)(l->r.lr * params / step) : l->r.lr;
#pragma omp parallel for schedule(static)
    for (size_t at = 0; at < l->n; at += RULE_BLOCK) {
        float r[RULE_BLOCK];
        size_t n = segment_piece(l->n, at, RULE_BLOCK);
        direction(l, at, n, r);
        for (size_t i = 0; i < n; i++)
            l->p[at + i] -= rate * r[i];
    }
}

static void lars(const struct layer *l, double *sums)
{
    double params = norm(l->p, l->n, sums);
    double grads = norm(l->g, l->n, sums) * l->r.scale;
    float trust = params > 0 && grads > 0
                      ? (float)(params / (grads + l->r.decay * params))
                      : 1;
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < l->n; i++) {
        float u = trust * (l->r.scale * l->g[i] + l->r.decay * l->p[i]);
        if (l->m)
            u = l->m[i] = l->r.momentum * l->m[i] + u;
        l->p[i] -= l->r.lr * u;
    }
}

// Updates elements [off, off + n) as AdamW or SGD.
static void plain(const struct rule *r, float *params, const float *grads,
                  size_t off, size_t n, int step, float lr, float scale)
{
    float *own[OPTIM_MAX_SLOTS];
    optim_slots_at(r->slots, off, own);
    optim_update(r->config, params + off, own, grads + off, off, n, step, lr,
                 scale);
}

// The bits do not depend on the number of threads.
static void update_layers(const struct rule *r, float *params,
                          const float *grads, const struct rule_in *in,
                          float scale, double *sums)
{
    const struct optim_config *c = r->config;
    struct layer l = {.r = optim_rates_of(c, in->step, in->lr, scale)};
    size_t at = 0;
    for (uint32_t k = 0; k < c->ndecay; k++) {
        size_t off = (size_t)c->decay[k].off;
        l.n = (size_t)c->decay[k].n;
        l.p = params + off;
        l.m = r->slots[0] ? r->slots[0] + off : NULL;
        l.v = r->slots[1] ? r->slots[1] + off : NULL;
        l.g = grads + off;
        plain(r, params, grads, at, off - at, in->step, in->lr, scale);
        if (c->kind == OPTIM_LAMB) { // with a rate of 0 only m and v change
            plain(r, params, grads, off, l.n, in->step, 0, scale);
            lamb(&l, sums);
        } else {
            lars(&l, sums);
        }
        at = off + l.n;
    }
    plain(r, params, grads, at, r->n - at, in->step, in->lr, scale);
    if (in->copy)
        vector_cast(in->copy->at, in->copy->format, params, DTYPE_F32, r->n);
}

// ---- the rules

static int cpu_open(struct rule *r)
{
    r->state = mem_alloc(segment_blocks(r->n), sizeof(double));
    return r->state ? 0 : -1;
}

static void cpu_close(struct rule *r)
{
    mem_free(r->state);
}

static int update(struct rule *r, float *params, const float *grads,
                  const struct rule_in *in, float scale)
{
    for (size_t at = 0, n; at < r->n; at += n) {
        float *slots[OPTIM_MAX_SLOTS];
        n = r->n - at;
        if (offload_take(r->file, r->slots, at, true, &n, slots))
            return -1;
        segment_update(r->config, params + at, slots, grads + at, at, n, in,
                       scale);
    }
    return 0;
}

static int cpu_step(struct rule *r, float *params, const float *grads,
                    const struct rule_in *in, float *norm)
{
    double *sums = r->state;
    const struct norm_parts *parts = in->parts;
    segment_squares(grads, 0, r->n, parts, sums);
    double squares = segment_norm(sums, segment_blocks(r->n));
    if (parts && parts->sum(parts->ctx, &squares))
        return -1;
    float scale = optim_clip_scale(squares, in->scale, in->clip, norm);
    if (!isfinite(*norm))
        return 0;
    if (r->config->kind != OPTIM_LARS && r->config->kind != OPTIM_LAMB)
        return update(r, params, grads, in, scale);
    update_layers(r, params, grads, in, scale, sums);
    return 0;
}

const struct rule_ops rule_cpu = {
    .device = "cpu",
    .open = cpu_open,
    .step = cpu_step,
    .close = cpu_close,
};
