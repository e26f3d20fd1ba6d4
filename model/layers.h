// layers.h - what a model has on every device: the tensors of a layer by
// number, what is kept of its forward, one block of memory, and dropout's
// masks.

#ifndef MODEL_LAYERS_H
#define MODEL_LAYERS_H

#include "model/cpu/kernels.h"
#include "model/model.h"

// Offsets of a layer's tensors from its first, in layout order.
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

// Index of a layer's tensor (wte is 0, wpe 1), and of ln_f's weight (its bias
// follows).
static inline int layer_at(int layer, enum layer_tensor t)
{
    return 2 + layer * MODEL_PER_LAYER + (int)t;
}

static inline int final_norm_at(const struct model_config *c)
{
    return 2 + c->layers * MODEL_PER_LAYER;
}

// The block (model_block()) of a tensor, and the first tensor of a block.
static inline int block_of(int tensor)
{
    return tensor < 2 ? 0 : 1 + (tensor - 2) / MODEL_PER_LAYER;
}

static inline int block_first(int b)
{
    return b == 0 ? 0 : layer_at(b - 1, LN1_W);
}

// off[i] of every tensor in the flat vector, and the whole length behind them.
void layers_offsets(const struct model_config *c, size_t *off);

// What backward needs of a layer's forward: 10 C numbers a token, in the
// model's format where it says void. (A slice has 2 C, and its share of qkv,
// att, pre and lse.) N = B*T rows. With recompute each layer has its own `in`
// alone: forward_again() makes the rest, in one place for all.
struct layer {
    void *in;             // (N, C) residual stream at the layer's entry
    void *qkv;            // (N, 3C)
    void *att;            // (N, C)
    void *mid;            // (N, C) residual stream between the branches
    void *pre;            // (N, 4C) before GELU; on the CPU without a late bias
    float *lse;           // (B, NH, T)
    float *mean1, *rstd1; // (N)
    float *mean2, *rstd2; // (N)
};

// A block that is cut into pieces from its start, each at a multiple of `line`
// bytes. Where it would overflow, `used` stays absurd, so that allocating
// fails.
struct cutter {
    char *block; // NULL: only count
    size_t line, used;
};

void *cut(struct cutter *c, size_t n, size_t size);
float *cut_floats(struct cutter *c, size_t n);

// What the layers of one room keep, and the residual stream behind the last,
// which is returned. Chunks use a room in turn. With recompute each layer has
// its `in` alone, and all layers of all rooms share the rest; without training
// they share one set. What is shared is cut with room 0, into *shared. `layers`
// may be NULL: only count.
void *cut_room(struct cutter *c, const struct model_job *job, int room,
               struct layer *shared, struct layer *layers);

// Where dropout strikes, of each layer; the embedding is SITE_EMBED of layer 0.
enum site { SITE_EMBED, SITE_ATTENTION, SITE_PROJ, SITE_OUT };

// Which dropout mask: none in evaluation, where `step` is NULL.
struct mask layers_mask(const struct model_job *job,
                        const struct model_step *step, int layer,
                        enum site site);

#endif
