// layers.h - the parts of a model that are the same on every device: the
// numbers of a layer's tensors, the results of its forward that are kept, the
// memory that holds them, and dropout's masks.

#pragma once

#include "model/kernels.h"
#include "model/model.h"
#include "model/part.h"

// The tensors of a layer, in layout order.
enum layer_tensor {
    LN1_W,
    LN1_B,
    QKV_W,
    QKV_B,
    PROJ_W,
    PROJ_B,
    LN2_W,
    LN2_B,
    FC_W,
    FC_B,
    OUT_W,
    OUT_B
};

// The index of a layer's tensor (wte is 0, wpe is 1), and of ln_f's weight
// (ln_f's bias follows it).
static inline int layer_at(int layer, enum layer_tensor t)
{
    return 2 + layer * MODEL_PER_LAYER + (int)t;
}

static inline int final_norm_at(const struct model_config *c)
{
    return 2 + c->layers * MODEL_PER_LAYER;
}

// The block (model_block()) that has a tensor, and the first tensor of a block.
static inline int block_of(int tensor)
{
    return tensor < 2 ? 0 : 1 + (tensor - 2) / MODEL_PER_LAYER;
}

static inline int block_first(int b)
{
    return b == 0 ? 0 : layer_at(b - 1, LN1_W);
}

// The results of a layer's forward that backward needs: 10 C numbers a token. A
// `void *` holds numbers in the model's format. N = B*T rows, and N' of them
// are this worker's: all of them, or a slice's share with
// model_slices.sequence. A slice has its share of qkv, att, pre and lse. With
// recompute a layer keeps only `in`. All layers share the memory of the rest,
// which forward_again() fills.
struct layer {
    void *in;             // (N', C) residual stream at the layer's entry
    void *qkv;            // (N, 3C)
    void *att;            // (N, C)
    void *heads;          // if workers exchange heads: attention of this
                          // worker's, of its group's tokens, as are qkv and lse
    void *mid;            // (N', C) residual stream between the branches
    void *norm1, *norm2;  // (N, C) with model_slices.keeps: what ln_1 and ln_2
                          // wrote; else NULL
    void *pre;            // (N, 4C) before GELU; perhaps before late_bias()
    void *gelu;           // (N, 4C) GELU's output, if products compute it;
                          // else memory for it that all layers share
    float *lse;           // (B, NH, T)
    float *mean1, *rstd1; // (N')
    float *mean2, *rstd2; // (N')
};

// The rows of the residual stream, of `rows` in all, that this worker has.
struct part_share layers_rows(const struct model_job *job, size_t rows);

// The heads of which worker w of a group computes attention: a share of those
// that this model has. The tokens of group g.
struct part_share layers_heads(const struct model_job *job, int w);
struct zigzag layers_group(const struct model_job *job, int g);

// The rows of scores of which this worker computes attention: of each of its
// heads, one for each token.
size_t layers_scores(const struct model_job *job);

// A block of memory that is given out in pieces, from its start. Each piece
// begins at a multiple of `line` bytes. If the size would overflow, `used` gets
// an impossible value and keeps it, so that the allocation of the block fails.
struct arena {
    char *block; // NULL: only count
    size_t line, used;
};

// The next n elements of `size` bytes, or n floats; NULL if the arena only
// counts.
void *arena_alloc(struct arena *a, size_t n, size_t size);
float *arena_floats(struct arena *a, size_t n);

// Where a layer has dropout. The embeddings' dropout is SITE_EMBED of layer 0.
enum site { SITE_EMBED, SITE_ATTENTION, SITE_PROJ, SITE_OUT };

// The dropout mask of a site. In evaluation `step` is NULL: no dropout. It also
// says which rows of divided sequences this worker has; in attention it counts
// the rows of whole ones.
struct mask layers_mask(const struct model_job *job,
                        const struct model_step *step, int layer,
                        enum site site);
