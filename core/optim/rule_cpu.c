// rule_cpu.c - the update in host memory, on OpenMP's threads.
//
// Blocks have a fixed size, and their sums of squares are added in order, so
// neither the norm nor the parameters depend on the number of threads.

#include "optim/rule.h"

#include "base/base.h"
#include "device/vector.h"

#include <math.h>

static size_t count_blocks(const struct rule *r)
{
    return (r->n + RULE_BLOCK - 1) / RULE_BLOCK;
}

static int cpu_open(struct rule *r)
{
    r->state = mem_alloc(count_blocks(r), sizeof(double));
    return r->state ? 0 : -1;
}

static void cpu_close(struct rule *r)
{
    mem_free(r->state);
}

static size_t block_len(const struct rule *r, size_t b)
{
    size_t left = r->n - b * RULE_BLOCK;
    return left < RULE_BLOCK ? left : RULE_BLOCK;
}

static double sum_squares(const struct rule *r, const float *grads)
{
    double *part = r->state, sum = 0;
    size_t blocks = count_blocks(r);
#pragma omp parallel for schedule(static)
    for (size_t b = 0; b < blocks; b++)
        part[b] = optim_sum_squares(grads + b * RULE_BLOCK, block_len(r, b));
    for (size_t b = 0; b < blocks; b++)
        sum += part[b];
    return sum;
}

// The copy follows its block while that is in the cache.
static void update_block(const struct rule *r, size_t b, float *params,
                         const float *grads, const struct rule_in *in,
                         float scale)
{
    size_t off = b * RULE_BLOCK, n = block_len(r, b);
    float *slots[OPTIM_MAX_SLOTS];
    for (int i = 0; i < OPTIM_MAX_SLOTS; i++)
        slots[i] = r->slots[i] ? r->slots[i] + off : NULL;
    optim_update(r->config, params + off, slots, grads + off, off, n, in->step,
                 in->lr, scale);
    if (in->copy)
        vector_cast((char *)in->copy->at + off * dtype_bytes(in->copy->format),
                    in->copy->format, params + off, DTYPE_F32, n);
}

static int cpu_step(struct rule *r, float *params, const float *grads,
                    const struct rule_in *in, float *norm)
{
    float scale =
        optim_clip_scale(sum_squares(r, grads), in->scale, in->clip, norm);
    if (!isfinite(*norm))
        return 0;
    size_t blocks = count_blocks(r);
#pragma omp parallel for schedule(static)
    for (size_t b = 0; b < blocks; b++)
        update_block(r, b, params, grads, in, scale);
    return 0;
}

const struct rule_ops rule_cpu = {
    .device = "cpu",
    .open = cpu_open,
    .step = cpu_step,
    .close = cpu_close,
};
