// rule_cpu.c - updates a vector in host memory: all of it as one segment, or as
// much as there is state in memory (optim/offload.h).

#include "optim/rule.h"

#include "base/base.h"
#include "optim/layered.h"
#include "optim/offload.h"
#include "optim/segment.h"

#include <math.h>

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
    if (layered_is(r->config))
        layered_update(r->config, params, r->slots, grads, r->n, in, scale,
                       sums);
    else
        return update(r, params, grads, in, scale);
    return 0;
}

const struct rule_ops rule_cpu = {
    .device = "cpu",
    .open = cpu_open,
    .step = cpu_step,
    .close = cpu_close,
};
