// rule_cuda.c - the update on a GPU: three kernels, one short wait.
//
//     squares -> decide --*-- update ......        the compute queue
//                         |
//                         verdict to the host: norm, skipped or not
//
// The host waits only for the verdict, while the update is queued behind it. So
// the host can queue the first kernels of the next step before the update is
// done.
//
// If the vector is a part of a longer one, the host needs the sums before the
// verdict, since it adds those of the other parts:
//
//     squares -> sums to the host; blocks that another part counts, again;
//                all parts' sums; verdict to the device -> update

#include "optim/rule_cuda.h"

#include "base/base.h"
#include "device/device.h"
#include "optim/segment.h"

#include <math.h>

struct state {
    double *sums; // of blocks
    struct optim_range *decay;
    struct rule_verdict *verdict, *seen; // on the device, pinned on the host
    struct device_event known;
    double *host_sums; // of blocks; pinned, as the next
    float *host_block; // the gradients of one block
};

static int cuda_open(struct rule *r)
{
    struct device *d = r->dev;
    struct state *s = mem_alloc(1, sizeof *s);
    if (!s)
        return -1;
    r->state = s;
    s->sums = device_alloc(d, segment_blocks(r->n), sizeof *s->sums);
    s->decay = device_alloc(d, r->config->ndecay, sizeof *s->decay);
    s->verdict = device_alloc(d, 1, sizeof *s->verdict);
    s->seen = device_host_alloc(d, 1, sizeof *s->seen);
    s->host_sums =
        device_host_alloc(d, segment_blocks(r->n), sizeof *s->host_sums);
    s->host_block = device_host_alloc(d, RULE_BLOCK, sizeof *s->host_block);
    if (!s->host_sums || !s->host_block || !s->sums || !s->decay ||
        !s->verdict || !s->seen || device_event_open(d, &s->known))
        return -1;
    device_copy(d, s->decay, r->config->decay,
                r->config->ndecay * sizeof *s->decay);
    return 0;
}

static void cuda_close(struct rule *r)
{
    struct state *s = r->state;
    if (!s)
        return;
    device_event_close(r->dev, &s->known);
    device_host_free(r->dev, s->seen);
    device_host_free(r->dev, s->host_sums);
    device_host_free(r->dev, s->host_block);
    device_free(r->dev, s->verdict);
    device_free(r->dev, s->decay);
    device_free(r->dev, s->sums);
    mem_free(s);
}

// Computes the sum of block b on the host, without what other parts count.
static void sum_again(struct rule *r, const float *grads,
                      const struct norm_parts *parts, size_t b)
{
    struct state *s = r->state;
    size_t off = b * RULE_BLOCK, n = segment_piece(r->n, off, RULE_BLOCK);
    device_copy(r->dev, s->host_block, grads + off, n * sizeof *grads);
    segment_squares(s->host_block, off, n, parts, s->host_sums);
}

// Leaves out of the sums on the host what other parts count.
static void leave_out(struct rule *r, const float *grads,
                      const struct norm_parts *parts)
{
    double *sums = ((struct state *)r->state)->host_sums;
    for (int i = 0; i < parts->count; i++) {
        const struct optim_range *e = &parts->elsewhere[i];
        size_t end = e->off + e->n;
        for (size_t b = e->off / RULE_BLOCK; b * RULE_BLOCK < end; b++) {
            bool whole =
                b * RULE_BLOCK >= e->off && (b + 1) * RULE_BLOCK <= end;
            if (whole)
                sums[b] = 0;
            else
                sum_again(r, grads, parts, b);
        }
    }
}

// The verdict over all parts, in s->verdict. 0, or -1 after fail().
static int decide_together(struct rule *r, const float *grads,
                           const struct rule_in *in)
{
    struct state *s = r->state;
    size_t blocks = segment_blocks(r->n);
    device_copy_on(r->dev, DEVICE_COMPUTE, s->host_sums, s->sums,
                   blocks * sizeof *s->sums);
    device_record(r->dev, &s->known, DEVICE_COMPUTE);
    if (in->settle && in->settle(in->ctx))
        return -1;
    device_wait(r->dev, &s->known);
    leave_out(r, grads, in->parts);
    double squares = segment_norm(s->host_sums, blocks);
    if (in->parts->sum(in->parts->ctx, &squares))
        return -1;
    struct rule_verdict *v = s->seen;
    v->scale = optim_clip_scale(squares, in->scale, in->clip, &v->norm);
    v->skip = !isfinite(v->norm);
    device_copy_on(r->dev, DEVICE_COMPUTE, s->verdict, v, sizeof *v);
    return 0;
}

// Queues the verdict of a whole vector, and its way to the host.
static void decide_alone(struct rule *r, const struct rule_in *in)
{
    struct state *s = r->state;
    rule_cuda_decide(device_handle(r->dev, DEVICE_COMPUTE), s->verdict, s->sums,
                     segment_blocks(r->n), in->scale, in->clip);
    device_copy_on(r->dev, DEVICE_COMPUTE, s->seen, s->verdict,
                   sizeof *s->seen);
    device_record(r->dev, &s->known, DEVICE_COMPUTE);
}

static int cuda_step(struct rule *r, float *params, const float *grads,
                     const struct rule_in *in, float *norm)
{
    const struct optim_config *c = r->config;
    struct state *s = r->state;
    void *queue = device_handle(r->dev, DEVICE_COMPUTE);
    rule_cuda_squares(queue, s->sums, grads, r->n);
    if (!in->parts)
        decide_alone(r, in);
    else if (decide_together(r, grads, in))
        return -1;
    rule_cuda_update(queue, c->kind, params, r->slots, grads, r->n,
                     optim_rates_of(c, in->step, in->lr, in->scale), s->decay,
                     c->ndecay, s->verdict, in->copy);
    if (!in->parts) {
        if (in->settle && in->settle(in->ctx))
            return -1;
        device_wait(r->dev, &s->known);
    }
    *norm = s->seen->norm;
    return 0;
}

const struct rule_ops rule_cuda = {
    .device = "cuda",
    .ahead = true,
    .open = cuda_open,
    .step = cuda_step,
    .close = cuda_close,
};
