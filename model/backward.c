// backward.c - gradients, from the last LayerNorm down to the embeddings.
//
// m->dres is the gradient of the residual stream. Each branch computes the
// gradient of its input. LayerNorm's backward turns that into the gradient of
// the residual stream, and adds it to dres: the backward of a residual
// connection is this addition. Gradients are completed from the end of the flat
// vector to its start, and the watermark falls with them.
//
// A stage does this for one chunk of its layers at a time. The last stage does
// not report wte, since the first stage has a share of its gradient, too.
//
// On a GPU the watermark falls when the work is queued, not when it is done:
// work that reads the gradients must wait for the compute queue at that point.

#include "model/pieces.h"
#include "model/state.h"

#include "telemetry/span.h"

struct back {
    struct model *m;
    const struct model_step *step;
    bool add;    // gradients are added to what is there
    int settled; // tensors from here on are complete
};

// In fp16: rounds the gradients of tensors [first, end) to fp16. Then stores
// them in the job's gradients, or adds them to these. Lent gradients stay where
// they are.
static void settle(const struct back *b, int first, int end)
{
    struct model *m = b->m;
    if (m->job.precision != DTYPE_F16)
        return;
    float *at = grad_at(m, first);
    float *to = m->job.lent_grads ? at : m->job.grads + m->off[first];
    m->k->settle(to, at, m->off[end] - m->off[first], b->step->accumulate);
}

// Reports that the gradients from tensor `first` on are complete.
static void report(struct back *b, int first)
{
    size_t off = b->m->off[first];
    settle(b, first, b->settled);
    b->settled = first;
    if (b->step->watermark)
        b->step->watermark(b->step->ctx, off);
}

// dout (N, outs) W', where W (ins, outs) is tensor w.
static struct product_job times(const struct model *m, const void *dout, int w,
                                int ins, int outs)
{
    return (struct product_job){.m = (int)m->rows,
                                .n = ins,
                                .k = outs,
                                .tb = true,
                                .a = dout,
                                .b = weight_at(m, w)};
}

// din (N, ins) = dout (N, outs) W'; with `pre`, times GELU's slope there.
static void input_gradient(struct model *m, void *din, void *pre,
                           const void *dout, int w, int ins, int outs)
{
    struct product_job j = times(m, dout, w, ins, outs);
    j.epilogue = pre ? EPILOGUE_DGELU : EPILOGUE_NONE;
    j.pre = pre;
    j.out = din;
    m->ops->product(m, &j);
}

// m->branch = dout (N, outs) W', summed over slices.
static int branch_input_gradient(struct model *m, const void *dout, int w,
                                 int outs)
{
    struct product_job j = times(m, dout, w, m->job.config.channels, outs);
    branch_product(m, &j, 0);
    return branch_join(m);
}

// dW = in' dout, db = sum of dout's rows.
static void weight_gradient(const struct back *b, int w, const void *in,
                            const void *dout, int ins, int outs)
{
    struct model *m = b->m;
    struct product_job j = {.m = ins,
                            .n = outs,
                            .k = (int)m->rows,
                            .ta = true,
                            .a = in,
                            .b = dout,
                            .out = grad_at(m, w),
                            .out_fp32 = true,
                            .add = b->add,
                            .epilogue = EPILOGUE_BIAS_GRAD,
                            .bias_grad = grad_at(m, w + 1)};
    m->ops->product(m, &j);
}

// Backward of the LayerNorm whose weight is tensor w, in this worker's rows.
// m->branch has the gradient of the LayerNorm's output. The gradient of its
// input replaces dres, or is added to it with add_dres. Also writes the
// LayerNorm's output to m->norm again. If slices divide the rows, each computes
// a part of the weight's and the bias's gradient, and all add the parts in the
// same order. Returns 0, or -1 after fail().
static int norm_gradient(const struct back *b, int w, const void *sum,
                         const float *mean, const float *rstd, bool add_dres)
{
    struct model *m = b->m;
    const struct model_part *p = &m->job.config.part;
    const struct model_slices *s = m->job.slices;
    size_t C = m->job.config.channels;
    bool divides = divides_rows(m);
    float *dw = divides ? m->dnorms + p->slice * 2 * C : grad_at(m, w);
    float *db = divides ? dw + C : grad_at(m, w + 1);
    m->k->norm_backward(m->dres, add_dres, rows_own(m, m->norm), dw, db,
                        b->add && !divides, m->branch, sum, mean, rstd,
                        weight_at(m, w), weight_at(m, w + 1), m->own_rows.n,
                        (int)C, m->partial);
    if (!divides)
        return 0;
    if (s->gather(s->ctx, m->dnorms, 2 * C))
        return -1;
    m->k->add_parts(grad_at(m, w), m->dnorms, p->slices, 2 * C, b->add);
    return 0;
}

// *norm = all rows of a LayerNorm's output: those that its layer kept, or
// m->norm, in which norm_gradient() has written this worker's. Returns 0, or -1
// after fail().
static int norm_rows(struct model *m, const void *kept, const void **norm)
{
    *norm = kept ? kept : m->norm;
    return kept ? 0 : rows_gather(m, m->norm);
}

// *d = the gradient (N, C) of the residual stream, times a mask: dres itself
// if this worker has all rows and nothing is masked. Returns 0, or -1 after
// fail().
static int stream_gradient(struct model *m, struct mask mask, const void **d)
{
    *d = m->dres;
    if (!divides_rows(m) && mask.threshold == 0)
        return 0;
    m->k->mask_rows(rows_own(m, m->dbranch), m->dres, m->own_rows.n,
                    m->job.config.channels, &mask);
    *d = m->dbranch;
    return rows_gather(m, m->dbranch);
}

// x += out(gelu(fc(ln_2(x))))
static int mlp_backward(struct back *b, int i)
{
    struct model *m = b->m;
    const struct layer *l = &m->layers[i];
    int C = m->job.config.channels, F = m->inner;
    const void *d, *norm;
    bool fused = m->ops->fused;
    if (stream_gradient(m, state_mask(m, b->step, i, SITE_OUT), &d))
        return -1;
    input_gradient(m, m->dwide, fused ? l->pre : NULL, d, layer_at(i, OUT_W), F,
                   C);
    if (!fused)
        m->k->gelu_backward(m->dwide, l->gelu, l->pre,
                            late_bias(m, layer_at(i, FC_B)), m->rows, F);
    weight_gradient(b, layer_at(i, OUT_W), l->gelu, d, F, C);
    report(b, layer_at(i, OUT_W));

    if (branch_input_gradient(m, m->dwide, layer_at(i, FC_W), F) ||
        norm_gradient(b, layer_at(i, LN2_W), l->mid, l->mean2, l->rstd2,
                      true) ||
        norm_rows(m, l->norm2, &norm))
        return -1;
    weight_gradient(b, layer_at(i, FC_W), norm, m->dwide, C, F);
    report(b, layer_at(i, LN2_W));
    return 0;
}

// x += proj(attention(qkv(ln_1(x))))
static int attention_backward(struct back *b, int i)
{
    struct model *m = b->m;
    const struct model_job *job = &m->job;
    const struct layer *l = &m->layers[i];
    int C = job->config.channels, H = m->width;
    const void *d, *norm;
    if (stream_gradient(m, state_mask(m, b->step, i, SITE_PROJ), &d))
        return -1;
    input_gradient(m, m->datt, NULL, d, layer_at(i, PROJ_W), H, C);
    weight_gradient(b, layer_at(i, PROJ_W), l->att, d, H, C);
    report(b, layer_at(i, PROJ_W));

    struct attention a = state_attention(m, b->step, i);
    if (job->pieces && pieces_backward(m, l, m->dwide, m->datt, &a))
        return -1;
    if (!job->pieces)
        m->k->attention_backward(m->dwide, m->datt, l->att, l->lse, l->qkv, &a);
    if (branch_input_gradient(m, m->dwide, layer_at(i, QKV_W), 3 * H) ||
        norm_gradient(b, layer_at(i, LN1_W), l->in, l->mean1, l->rstd1, true) ||
        norm_rows(m, l->norm1, &norm))
        return -1;
    weight_gradient(b, layer_at(i, QKV_W), norm, m->dwide, C, 3 * H);
    report(b, layer_at(i, LN1_W));
    return 0;
}

// Computes a layer's forward again, if the layers after it have used the same
// memory.
static int recompute(const struct back *b, int i)
{
    if (!b->m->job.recompute || b->m->filled == &b->m->layers[i])
        return 0;
    span_begin(b->step->lane, SPAN_FORWARD, part_layer(&b->m->job.config, i));
    int rc = forward_again(b->m, i, b->step);
    span_end(b->step->lane);
    return rc;
}

// Gradients of wte and wpe, from the residual stream's at the model's start.
// Returns 0, or -1 after fail().
static int embed_backward(struct back *b)
{
    struct model *m = b->m;
    const struct model_job *job = &m->job;
    struct mask mask = layers_mask(job, b->step, 0, SITE_EMBED);
    int T = whole_tokens(m);
    size_t used = (size_t)T * job->config.channels;
    size_t all = m->off[2] - m->off[1];
    float *dwte = grad_at(m, 0), *dwpe = grad_at(m, 1);
    const void *d;
    if (stream_gradient(m, (struct mask){.keep = 1}, &d))
        return -1;
    if (!b->add && used < all) // positions that this job never reaches
        m->k->zero(dwpe + used, all - used);
    if (!b->add && !part_has_head(&job->config)) // no head has written dwte
        m->k->zero(dwte, m->off[1] - m->off[0]);
    m->k->embed_backward(dwte, dwpe, d, b->step->x, m->words, m->rows, T,
                         job->config.channels, b->add, &mask);
    report(b, 0);
    return 0;
}

// Backward of ln_f, from the head's gradient in m->branch.
static int final_backward(struct back *b)
{
    struct model *m = b->m;
    int last = final_norm_at(&m->job.config);
    if (block_take(m, block_of(last), true) ||
        norm_gradient(b, last, m->last, m->mean, m->rstd, false))
        return -1;
    report(b, last);
    return block_give(m, block_of(last));
}

static void spare(struct model *m, bool travelling)
{
    if (m->ops->spare)
        m->ops->spare(m, travelling);
}

int backward(struct model *m, const struct model_step *step)
{
    const struct model_job *job = &m->job;
    struct back b = {.m = m,
                     .step = step,
                     .add = adds_grads(m, step),
                     .settled = is_last(m) ? model_ntensors(&job->config)
                                           : layer_at(m->to, LN1_W)};
    if (is_last(m) && final_backward(&b))
        return -1;
    spare(m, step->watermark != NULL);
    for (int i = m->to - 1; i >= m->from; i--) {
        span_begin(step->lane, SPAN_BACKWARD, part_layer(&job->config, i));
        if (block_take(m, i + 1, true) || recompute(&b, i) ||
            mlp_backward(&b, i) || attention_backward(&b, i) ||
            block_give(m, i + 1))
            return -1;
        span_end(step->lane);
    }
    spare(m, false);
    if (is_first(m) && embed_backward(&b))
        return -1;
    if (!is_first(m) && is_last(m))
        settle(&b, 0, 1); // the head's share of wte's gradient
    return is_first(m) ? block_give(m, 0) : 0;
}
