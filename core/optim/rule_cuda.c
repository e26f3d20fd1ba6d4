// rule_cuda.c - the update on a GPU: three kernels, one short wait.
//
//     squares -> decide --*-- update ......        the compute queue
//                         |
//                         verdict to the host: norm, skipped or not
//
// The host waits only for the verdict, while the update is queued behind it. So
// the host can queue the first kernels of the next step before the update is
// done.

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
    if (!s->sums || !s->decay || !s->verdict || !s->seen ||
        device_event_open(d, &s->known))
        return -1;
    return device_copy(d, s->decay, r->config->decay,
                       r->config->ndecay * sizeof *s->decay);
}

static void cuda_close(struct rule *r)
{
    struct state *s = r->state;
    if (!s)
        return;
    device_event_close(r->dev, &s->known);
    device_host_free(r->dev, s->seen);
    device_free(r->dev, s->verdict);
    device_free(r->dev, s->decay);
    device_free(r->dev, s->sums);
    mem_free(s);
}

static int cuda_step(struct rule *r, float *params, const float *grads,
                     const struct rule_in *in, float *norm)
{
    const struct optim_config *c = r->config;
    struct state *s = r->state;
    void *queue = device_handle(r->dev, DEVICE_COMPUTE);
    struct rule_rates rates = {
        .lr = in->lr,
        .decay = c->weight_decay,
        .beta1 = c->beta1,
        .beta2 = c->beta2,
        .eps = c->eps,
        .momentum = c->momentum,
        .correct1 = (float)(1 / (1 - pow((double)c->beta1, in->step))),
        .correct2 = (float)(1 / (1 - pow((double)c->beta2, in->step))),
    };
    rule_cuda_squares(queue, s->sums, grads, r->n);
    rule_cuda_decide(queue, s->verdict, s->sums, segment_blocks(r->n),
                     in->scale, in->clip);
    if (device_copy_on(r->dev, DEVICE_COMPUTE, s->seen, s->verdict,
                       sizeof *s->seen) ||
        device_record(r->dev, &s->known, DEVICE_COMPUTE))
        return -1;
    rule_cuda_update(queue, c->kind, params, r->slots, grads, r->n, rates,
                     s->decay, c->ndecay, s->verdict, in->copy);
    if ((in->settle && in->settle(in->ctx)) || device_wait(r->dev, &s->known))
        return -1;
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
