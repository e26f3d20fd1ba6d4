// forward.c - GPT-2, from tokens to the last LayerNorm.
//
//     x = wte[token] + wpe[position]
//     each layer:  x += proj(attention(qkv(ln_1(x))))
//                  x += out(gelu(fc(ln_2(x))))
//     ln_f(x)
//
// A residual addition and the LayerNorm after it are one pass. So the code goes
// from one LayerNorm to the next. At the end of a layer, that pass needs
// weights of two blocks: this layer's bias and the next LayerNorm. So the next
// block is taken before this one is given back. The embeddings and ln_f stay
// taken: the head and backward need them. (A stage has all of its blocks. To
// take one only means to wait until its parameters have arrived.)
//
// A stage does this for one chunk of its layers at a time.

#include "model/pieces.h"
#include "model/state.h"

#include "telemetry/span.h"

// in (N, ins) W (ins, outs), tensor w, and with the bias unless that is NULL.
static struct product_job times(const struct model *m, const void *in, int w,
                                int ins, int outs, const void *bias)
{
    return (struct product_job){.m = (int)m->rows,
                                .n = outs,
                                .k = ins,
                                .a = in,
                                .b = weight_at(m, w),
                                .epilogue =
                                    bias ? EPILOGUE_BIAS : EPILOGUE_NONE,
                                .bias = bias};
}

// Where ln_1 or ln_2 writes: `kept` of a layer, or memory that all share.
static void *norm_in(const struct model *m, void *kept)
{
    return kept ? kept : m->norm;
}

// l->pre = ln_2's output W + b, tensors FC_W and FC_B. Also computes l->gelu if
// the product can; else the next pass does, and adds b if that is faster.
static void widen(struct model *m, int i)
{
    const struct layer *l = &m->layers[i];
    int w = layer_at(i, FC_W), b = layer_at(i, FC_B);
    const void *bias = late_bias(m, b) ? NULL : weight_at(m, b);
    struct product_job j = times(m, norm_in(m, l->norm2), w,
                                 m->job.config.channels, m->inner, bias);
    j.out = l->pre;
    if (m->ops->fused) {
        j.epilogue = EPILOGUE_GELU;
        j.pre = l->pre;
        j.out = l->gelu;
    }
    m->ops->product(m, &j);
}

// In this worker's rows: sum = res + mask(branch), norm = LayerNorm(sum) with
// tensors w and w + 1. Adds the bias, tensor b, to the branch first if the
// product has not. b is 0 if there is no branch.
static void add_norm(struct model *m, void *norm, void *sum, const void *res,
                     const void *branch, int b, int w, float *mean, float *rstd,
                     struct mask mask)
{
    m->k->norm(sum, rows_own(m, norm), mean, rstd, res, branch,
               branch ? branch_bias(m, b) : NULL, weight_at(m, w),
               weight_at(m, w + 1), m->own_rows.n, m->job.config.channels,
               &mask);
}

// LayerNorm ln_1 of the residual stream at a layer's entry.
static void enter_layer(struct model *m, int i)
{
    const struct layer *l = &m->layers[i];
    const struct mask none = {.keep = 1};
    add_norm(m, norm_in(m, l->norm1), NULL, l->in, NULL, 0, layer_at(i, LN1_W),
             l->mean1, l->rstd1, none);
}

// m->branch = in (N, ins) W, tensor `w`. The bias, tensor w + 1, is added here
// or in the next pass. Returns 0, or -1 after fail().
static int linear_branch(struct model *m, const void *in, int w, int ins)
{
    const void *bias = branch_bias(m, w + 1) ? NULL : weight_at(m, w + 1);
    struct product_job j = times(m, in, w, ins, m->job.config.channels, bias);
    branch_product(m, &j, 0);
    return branch_join(m);
}

struct mask state_mask(const struct model *m, const struct model_step *step,
                       int layer, enum site site)
{
    struct mask mask = layers_mask(&m->job, step, layer, site);
    mask.row = m->own_rows.first;
    return mask;
}

struct attention state_attention(const struct model *m,
                                 const struct model_step *step, int layer)
{
    const struct model_config *g = &m->job.config;
    struct part_share heads = part_heads(g);
    return (struct attention){.B = m->batch,
                              .T = whole_tokens(m),
                              .C = m->width,
                              .NH = heads.n,
                              .mask = layers_mask(&m->job, step, layer,
                                                  SITE_ATTENTION),
                              .scratch = m->scratch,
                              .head = heads.first,
                              .heads = g->heads};
}

// Computes all that backward needs of a layer, from ln_1's output.
// Returns 0, or -1 after fail().
static int fill_layer(struct model *m, int i, const struct model_step *step)
{
    const struct layer *l = &m->layers[i];
    struct attention a = state_attention(m, step, i);
    void *norm1 = norm_in(m, l->norm1), *norm2 = norm_in(m, l->norm2);
    if (rows_gather(m, norm1))
        return -1;
    struct product_job qkv =
        times(m, norm1, layer_at(i, QKV_W), m->job.config.channels,
              3 * m->width, weight_at(m, layer_at(i, QKV_B)));
    qkv.out = m->local ? m->local : l->qkv;
    m->ops->product(m, &qkv);
    if (m->job.pieces && pieces_attention(m, l, &a))
        return -1;
    if (!m->job.pieces)
        m->k->attention(l->att, l->lse, l->qkv, &a);
    if (linear_branch(m, l->att, layer_at(i, PROJ_W), m->width))
        return -1;
    add_norm(m, norm2, l->mid, l->in, m->branch, layer_at(i, PROJ_B),
             layer_at(i, LN2_W), l->mean2, l->rstd2,
             state_mask(m, step, i, SITE_PROJ));
    if (rows_gather(m, norm2))
        return -1;
    widen(m, i);
    m->filled = l;
    return 0;
}

int forward_again(struct model *m, int i, const struct model_step *step)
{
    enter_layer(m, i);
    return fill_layer(m, i, step);
}

void norm_again(struct model *m)
{
    const struct mask none = {.keep = 1};
    add_norm(m, m->norm, NULL, m->last, NULL, 0, final_norm_at(&m->job.config),
             m->mean, m->rstd, none);
}

// Writes the embeddings of m->x to the first layer's input. Returns 0, or -1
// after fail().
static int embed(struct model *m, const struct model_step *step)
{
    struct mask mask = state_mask(m, step, 0, SITE_EMBED);
    int C = m->job.config.channels;
    if (!m->sum) {
        m->k->embed(m->layers->in, weight_at(m, 0), weight_at(m, 1), m->x,
                    m->rows, whole_tokens(m), C, &mask);
        return 0;
    }
    m->k->embed_words(m->sum, weight_at(m, 0), m->x, m->words, m->rows, C);
    if (parts_join(m))
        return -1;
    m->k->embed_places(m->layers->in, m->sum + m->own_rows.first * (size_t)C,
                       weight_at(m, 1), m->own_rows.n, whole_tokens(m), C,
                       &mask);
    return 0;
}

// The pass after layer i: the residual addition, and the LayerNorm of the next
// layer or ln_f. At the end of a chunk it only adds: the next stage computes
// the LayerNorm.
static void leave_layer(struct model *m, int i, const struct model_step *step)
{
    const struct layer *l = &m->layers[i];
    const struct mask mask = state_mask(m, step, i, SITE_OUT);
    int bias = layer_at(i, OUT_B);
    if (i + 1 < m->to)
        add_norm(m, norm_in(m, l[1].norm1), l[1].in, l->mid, m->branch, bias,
                 layer_at(i + 1, LN1_W), l[1].mean1, l[1].rstd1, mask);
    else if (is_last(m))
        add_norm(m, m->norm, m->last, l->mid, m->branch, bias,
                 final_norm_at(&m->job.config), m->mean, m->rstd, mask);
    else
        m->k->norm(m->last, NULL, NULL, NULL, l->mid, m->branch,
                   branch_bias(m, bias), NULL, NULL, m->own_rows.n,
                   m->job.config.channels, &mask);
}

// Computes GELU's output, in memory that all layers share, unless the product
// before it has.
static void gelu(struct model *m, int i)
{
    const struct layer *l = &m->layers[i];
    if (m->ops->fused)
        return;
    m->k->gelu(l->gelu, l->pre, late_bias(m, layer_at(i, FC_B)), m->rows,
               m->inner);
    m->filled = NULL; // with recompute l->gelu is l->pre
}

int forward(struct model *m, const int32_t *x, const struct model_step *step)
{
    struct span_lane *lane = step ? step->lane : NULL;
    if (is_first(m))
        m->ops->tokens(m, x, m->rows);
    if (((is_first(m) || is_last(m)) && block_take(m, 0, false)) ||
        (is_first(m) && embed(m, step)) || block_take(m, m->from + 1, false))
        return -1;
    enter_layer(m, m->from);
    for (int i = m->from; i < m->to; i++) {
        span_begin(lane, SPAN_FORWARD, part_layer(&m->job.config, i));
        if (fill_layer(m, i, step))
            return -1;
        gelu(m, i);
        if (linear_branch(m, m->layers[i].gelu, layer_at(i, OUT_W), m->inner) ||
            block_take(m, i + 2, false))
            return -1;
        leave_layer(m, i, step);
        if (block_give(m, i + 1))
            return -1;
        span_end(lane);
    }
    m->normed = is_last(m) ? m->slot : -1;
    return 0;
}
