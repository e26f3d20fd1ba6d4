// backward_cuda.c - gradients on a GPU, from the last LayerNorm to the
// embeddings.
//
// The steps are those of model/backward.c. GELU's gradient is the epilogue of a
// product. The gradient of a bias is computed with the product for its weights'
// gradient. The watermark falls when the work is queued, not when it is done:
// work that reads the gradients must wait for the compute queue at that point.

#include "model/cuda/forward_cuda.h"

#include "device/cuda.h"
#include "model/cuda/dnn_attention.h"
#include "telemetry/span.h"

#include <cuda_runtime_api.h>

struct back {
    struct cuda_model *m;
    const struct model_step *step;
    size_t rows;
    bool add; // gradients are added to what is there
};

// Reports that the gradients from tensor `first` on are queued. In fp16, rounds
// them into job.grads first.
static void report(const struct back *b, int first)
{
    struct cuda_model *m = b->m;
    size_t off = m->off[first];
    if (m->grads != m->job.grads) {
        cuda_settle(m->queue, m->job.precision, m->job.grads + off,
                    m->grads + off, m->settled - off, b->step->accumulate);
        m->settled = off;
    }
    if (b->step->watermark)
        b->step->watermark(b->step->ctx, off);
}

// din (rows, ins) = dout (rows, outs) W'; with `pre`, times GELU's slope at
// pre.
static void input_gradient(const struct back *b, void *din, void *pre,
                           const void *dout, int w, int ins, int outs)
{
    struct cuda_product_job j = {.m = (int)b->rows,
                                 .n = ins,
                                 .k = outs,
                                 .tb = true,
                                 .a = dout,
                                 .b = weight_at(b->m, w),
                                 .epilogue =
                                     pre ? EPILOGUE_DGELU : EPILOGUE_NONE,
                                 .pre = pre,
                                 .out = din};
    cuda_product_run(b->m->product, &j);
}

// dW = in' dout, db = sum of dout's rows.
static void weight_gradient(const struct back *b, int w, const void *in,
                            const void *dout, int ins, int outs)
{
    struct cuda_model *m = b->m;
    struct cuda_product_job j = {.m = ins,
                                 .n = outs,
                                 .k = (int)b->rows,
                                 .ta = true,
                                 .a = in,
                                 .b = dout,
                                 .out = m->grads + m->off[w],
                                 .out_fp32 = true,
                                 .add = b->add,
                                 .epilogue = EPILOGUE_BIAS_GRAD,
                                 .bias_grad = m->grads + m->off[w + 1]};
    cuda_product_run(m->product, &j);
}

// Backward of the LayerNorm whose weight is tensor w. m->branch has the
// gradient of the LayerNorm's output. The gradient of its input replaces dres,
// or is added to it with add_dres. Also writes the LayerNorm's output to
// m->norm again.
static void norm_gradient(const struct back *b, int w, const void *sum,
                          const float *mean, const float *rstd, bool add_dres)
{
    struct cuda_model *m = b->m;
    cuda_norm_backward(m->queue, m->job.precision, m->dres, add_dres, m->norm,
                       m->grads + m->off[w], m->grads + m->off[w + 1], b->add,
                       m->branch, sum, mean, rstd, weight_at(m, w),
                       weight_at(m, w + 1), b->rows, m->job.config.channels,
                       m->partial);
}

// The gradient of the branch at `site`: dres, times dropout's mask if there is
// one.
static const void *branch_gradient(const struct back *b, int layer,
                                   enum site site)
{
    struct cuda_model *m = b->m;
    struct mask mask = layers_mask(&m->job, b->step, layer, site);
    if (mask.threshold == 0)
        return m->dres;
    cuda_mask_rows(m->queue, m->job.precision, m->dbranch, m->dres, b->rows,
                   m->job.config.channels, &mask);
    return m->dbranch;
}

// x += out(gelu(fc(ln_2(x))))
static void mlp_backward(const struct back *b, int i)
{
    struct cuda_model *m = b->m;
    const struct layer *l = &m->layers[i];
    int C = m->job.config.channels;
    const void *d = branch_gradient(b, i, SITE_OUT);
    input_gradient(b, m->dwide, l->pre, d, layer_at(i, OUT_W), 4 * C, C);
    weight_gradient(b, layer_at(i, OUT_W), m->gelu[i], d, 4 * C, C);
    report(b, layer_at(i, OUT_W));

    input_gradient(b, m->branch, NULL, m->dwide, layer_at(i, FC_W), C, 4 * C);
    norm_gradient(b, layer_at(i, LN2_W), l->mid, l->mean2, l->rstd2, true);
    weight_gradient(b, layer_at(i, FC_W), m->norm, m->dwide, C, 4 * C);
    report(b, layer_at(i, LN2_W));
}

// x += proj(attention(qkv(ln_1(x))))
static void attention_backward(const struct back *b, int i)
{
    struct cuda_model *m = b->m;
    const struct layer *l = &m->layers[i];
    int C = m->job.config.channels;
    const void *d = branch_gradient(b, i, SITE_PROJ);
    input_gradient(b, m->branch, NULL, d, layer_at(i, PROJ_W), C, C);
    weight_gradient(b, layer_at(i, PROJ_W), l->att, d, C, C);
    report(b, layer_at(i, PROJ_W));

    struct cuda_attention a =
        cuda_attention_at(m, m->job.batch, m->job.tokens, b->step, i);
    if (m->dnn)
        dnn_attention_backward(m->dnn, m->dwide, m->row_sum, m->branch, l->att,
                               l->lse, l->qkv);
    else
        cuda_attention_backward(m->queue, m->dwide, m->row_sum, m->branch,
                                l->att, l->lse, l->qkv, &a);
    input_gradient(b, m->branch, NULL, m->dwide, layer_at(i, QKV_W), C, 3 * C);
    norm_gradient(b, layer_at(i, LN1_W), l->in, l->mean1, l->rstd1, true);
    weight_gradient(b, layer_at(i, QKV_W), m->norm, m->dwide, C, 3 * C);
    report(b, layer_at(i, LN1_W));
}

static void embed_backward(const struct back *b)
{
    struct cuda_model *m = b->m;
    const struct model_job *job = &m->job;
    size_t C = (size_t)job->config.channels;
    size_t used = m->off[1] + (size_t)job->tokens * C;
    struct mask mask = layers_mask(&m->job, b->step, 0, SITE_EMBED);
    if (!b->add && used < m->off[2]) // positions that this job never reaches
        CU(cudaMemsetAsync(m->grads + used, 0,
                           (m->off[2] - used) * sizeof *m->grads, m->queue));
    cuda_embed_backward(m->queue, job->precision, m->grads,
                        m->grads + m->off[1], m->dres, &m->tokens, job->batch,
                        job->tokens, (int)C, b->add, &mask);
}

void cuda_backward(struct cuda_model *m, const struct model_step *step)
{
    const struct model_job *job = &m->job;
    struct back b = {.m = m,
                     .step = step,
                     .rows = (size_t)job->batch * job->tokens,
                     .add = step->accumulate && m->grads == job->grads};
    m->settled = m->nparams;
    norm_gradient(&b, final_norm_at(&m->job.config), m->last, m->mean, m->rstd,
                  false);
    report(&b, final_norm_at(&m->job.config));
    cuda_product_leave(m->product, step->watermark ? job->spared : 0);
    for (int i = job->config.layers - 1; i >= 0; i--) {
        if (job->recompute && i + 1 < job->config.layers) {
            span_begin(step->lane, SPAN_FORWARD, i);
            cuda_forward_again(m, i, step); // the last layer's results remain
            span_end(step->lane);
        }
        span_begin(step->lane, SPAN_BACKWARD, i);
        mlp_backward(&b, i);
        attention_backward(&b, i);
        span_end(step->lane);
    }
    cuda_product_leave(m->product, 0);
    embed_backward(&b);
    report(&b, 0);
}
