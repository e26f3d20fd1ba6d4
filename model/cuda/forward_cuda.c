// forward_cuda.c - GPT-2 on a GPU, from tokens to the last LayerNorm.
//
// The steps are those of model/forward.c. GELU is the epilogue of the product
// before it. All work goes into one queue, and no function waits for it.

#include "model/cuda/forward_cuda.h"

#include "model/cuda/dnn_attention.h"
#include "telemetry/span.h"

struct cuda_attention cuda_attention_at(const struct cuda_model *m, int B,
                                        int T, const struct model_step *step,
                                        int layer)
{
    return (struct cuda_attention){
        .B = B,
        .T = T,
        .C = m->job.config.channels,
        .NH = m->job.config.heads,
        .format = m->job.precision,
        .tf32 = m->job.tf32,
        .mask = layers_mask(&m->job, step, layer, SITE_ATTENTION),
    };
}

// out (rows, outs) = in (rows, ins) W + b. W and b are tensors w and w + 1 of
// the layout. With `pre` the result goes there, and out is its GELU.
static void linear(struct cuda_model *m, void *out, void *pre, const void *in,
                   int w, size_t rows, int ins, int outs)
{
    struct cuda_product_job j = {.m = (int)rows,
                                 .n = outs,
                                 .k = ins,
                                 .a = in,
                                 .b = weight_at(m, w),
                                 .bias = weight_at(m, w + 1),
                                 .epilogue =
                                     pre ? EPILOGUE_GELU : EPILOGUE_BIAS,
                                 .pre = pre,
                                 .out = out};
    cuda_product_run(m->product, &j);
}

// sum = res + mask(branch), m->norm = LayerNorm(sum) by tensors w and w + 1.
static void add_norm(struct cuda_model *m, void *sum, const void *res,
                     const void *branch, int w, float *mean, float *rstd,
                     size_t rows, struct mask mask)
{
    cuda_norm(m->queue, m->job.precision, sum, m->norm, mean, rstd, res, branch,
              weight_at(m, w), weight_at(m, w + 1), rows,
              m->job.config.channels, &mask);
}

// LayerNorm ln_1 of the residual stream at a layer's entry, into m->norm.
static void enter_layer(struct cuda_model *m, int i, size_t rows)
{
    const struct layer *l = &m->layers[i];
    const struct mask none = {.keep = 1};
    add_norm(m, NULL, l->in, NULL, layer_at(i, LN1_W), l->mean1, l->rstd1, rows,
             none);
}

// Computes all that backward needs of a layer, from ln_1's output in m->norm.
static void fill_layer(struct cuda_model *m, int i, int B, int T,
                       const struct model_step *step)
{
    const struct layer *l = &m->layers[i];
    int C = m->job.config.channels;
    size_t rows = (size_t)B * T;
    struct cuda_attention a = cuda_attention_at(m, B, T, step, i);
    linear(m, l->qkv, NULL, m->norm, layer_at(i, QKV_W), rows, C, 3 * C);
    if (m->dnn && dnn_attention_fits(m->dnn, &a))
        dnn_attention_forward(m->dnn, l->att, l->lse, l->qkv);
    else
        cuda_attention(m->queue, l->att, l->lse, l->qkv, &a);
    linear(m, m->branch, NULL, l->att, layer_at(i, PROJ_W), rows, C, C);
    add_norm(m, l->mid, l->in, m->branch, layer_at(i, LN2_W), l->mean2,
             l->rstd2, rows, layers_mask(&m->job, step, i, SITE_PROJ));
    linear(m, m->gelu[i], l->pre, m->norm, layer_at(i, FC_W), rows, C, 4 * C);
}

void cuda_forward_again(struct cuda_model *m, int i,
                        const struct model_step *step)
{
    int B = m->job.batch, T = m->job.tokens;
    enter_layer(m, i, (size_t)B * (size_t)T);
    fill_layer(m, i, B, T, step);
}

void cuda_forward(struct cuda_model *m, int B, int T,
                  const struct model_step *step)
{
    const struct model_config *g = &m->job.config;
    int C = g->channels, L = g->layers;
    size_t rows = (size_t)B * T;
    struct mask mask = layers_mask(&m->job, step, 0, SITE_EMBED);
    struct layer *l = m->layers;
    cuda_embed(m->queue, m->job.precision, l->in, weight_at(m, 0),
               weight_at(m, 1), m->x, B, T, C, &mask);
    enter_layer(m, 0, rows);
    struct span_lane *lane = step ? step->lane : NULL;
    for (int i = 0; i < L; i++, l++) {
        span_begin(lane, SPAN_FORWARD, i);
        fill_layer(m, i, B, T, step);
        linear(m, m->branch, NULL, m->gelu[i], layer_at(i, OUT_W), rows, 4 * C,
               C);
        bool last = i + 1 == L;
        add_norm(m, last ? m->last : l[1].in, l->mid, m->branch,
                 last ? final_norm_at(&m->job.config) : layer_at(i + 1, LN1_W),
                 last ? m->mean : l[1].mean1, last ? m->rstd : l[1].rstd1, rows,
                 layers_mask(&m->job, step, i, SITE_OUT));
        span_end(lane);
    }
}
