// forward.c - GPT-2, from tokens to the last LayerNorm.
//
//     x = wte[token] + wpe[position]
//     each layer:  x += proj(attention(qkv(ln_1(x))))
//                  x += out(gelu(fc(ln_2(x))))
//     ln_f(x)
//
// An addition and the LayerNorm behind it are one pass, so the code runs from
// one LayerNorm to the next. That pass takes the next block before this one is
// given back. The embeddings and ln_f stay taken: the head and backward need
// them.

#include "model/state.h"

#include "telemetry/span.h"

// out (rows, outs) = in (rows, ins) W + b, tensors `w` and w + 1 of the layout.
// `late`: b is left to the pass behind, where that is the faster way.
static void linear(struct cpu_model *m, void *out, const void *in, int w,
                   size_t rows, int ins, int outs, bool late)
{
    bool left = late && late_bias(m, w + 1);
    struct product_job j = {.m = (int)rows,
                            .n = outs,
                            .k = ins,
                            .a = in,
                            .b = weight_at(m, w),
                            .bias = left ? NULL : weight_at(m, w + 1),
                            .out = out};
    product_run(m->product, &j);
}

// sum = res + mask(branch, bias `b` added if left to do), m->norm =
// LayerNorm(sum) by tensors w and w + 1.
static void add_norm(struct cpu_model *m, void *sum, const void *res,
                     const void *branch, int b, int w, float *mean, float *rstd,
                     size_t rows, struct mask mask)
{
    m->k->norm(sum, m->norm, mean, rstd, res, branch, late_bias(m, b),
               weight_at(m, w), weight_at(m, w + 1), rows,
               m->job.config.channels, &mask);
}

// LayerNorm ln_1 of the residual stream at a layer's entry, into m->norm.
static void enter_layer(struct cpu_model *m, int i, size_t rows)
{
    const struct layer *l = &m->layers[i];
    const struct mask none = {.keep = 1};
    add_norm(m, NULL, l->in, NULL, 0, layer_at(i, LN1_W), l->mean1, l->rstd1,
             rows, none);
}

// From m->norm on, all that backward needs of a layer.
static void fill_layer(struct cpu_model *m, int i, int B, int T,
                       const struct model_step *step)
{
    const struct layer *l = &m->layers[i];
    int C = m->job.config.channels;
    size_t rows = (size_t)B * T;
    struct attention a = {.B = B,
                          .T = T,
                          .C = C,
                          .NH = m->job.config.heads,
                          .mask = layers_mask(&m->job, step, i, SITE_ATTENTION),
                          .scratch = m->scratch};
    linear(m, l->qkv, m->norm, layer_at(i, QKV_W), rows, C, 3 * C, false);
    m->k->attention(l->att, l->lse, l->qkv, &a);
    linear(m, m->branch, l->att, layer_at(i, PROJ_W), rows, C, C, true);
    add_norm(m, l->mid, l->in, m->branch, layer_at(i, PROJ_B),
             layer_at(i, LN2_W), l->mean2, l->rstd2, rows,
             layers_mask(&m->job, step, i, SITE_PROJ));
    linear(m, l->pre, m->norm, layer_at(i, FC_W), rows, C, 4 * C, true);
}

void forward_again(struct cpu_model *m, int i, const struct model_step *step)
{
    int B = m->job.batch, T = m->job.tokens;
    enter_layer(m, i, (size_t)B * T);
    fill_layer(m, i, B, T, step);
}

int forward(struct cpu_model *m, const int32_t *x, int B, int T,
            const struct model_step *step)
{
    const struct model_config *g = &m->job.config;
    int C = g->channels, L = g->layers;
    size_t rows = (size_t)B * T;
    struct mask mask = layers_mask(&m->job, step, 0, SITE_EMBED);
    struct layer *l = m->layers;
    if (block_take(m, 0, false))
        return -1;
    m->k->embed(l->in, weight_at(m, 0), weight_at(m, 1), x, B, T, C, &mask);
    if (block_take(m, 1, false))
        return -1;
    enter_layer(m, 0, rows);
    struct span_lane *lane = step ? step->lane : NULL;
    for (int i = 0; i < L; i++, l++) {
        span_begin(lane, SPAN_FORWARD, i);
        fill_layer(m, i, B, T, step);
        m->k->gelu(m->wide, l->pre, late_bias(m, layer_at(i, FC_B)), rows,
                   4 * C);
        linear(m, m->branch, m->wide, layer_at(i, OUT_W), rows, 4 * C, C, true);
        bool last = i + 1 == L;
        if (block_take(m, i + 2, false))
            return -1;
        add_norm(m, last ? m->last : l[1].in, l->mid, m->branch,
                 layer_at(i, OUT_B),
                 last ? final_norm_at(&m->job.config) : layer_at(i + 1, LN1_W),
                 last ? m->mean : l[1].mean1, last ? m->rstd : l[1].rstd1, rows,
                 layers_mask(&m->job, step, i, SITE_OUT));
        if (block_give(m, i + 1))
            return -1;
        span_end(lane);
    }
    return 0;
}
