// layers.h - the parts of a model that are the same on every device: the
// tensors of a layer by number, the results of its forward that are kept, one
// block of memory, and dropout's masks.

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

// The block (model_block()) of a tensor; and, below, a block's first tensor.
static inline int block_of(int tensor)
{
    return tensor < 2 ? 0 : 1 + (tensor - 2) / MODEL_PER_LAYER;
}

static inline int block_first(int b)
{
    return b == 0 ? 0 : layer_at(b - 1, LN1_W);
}

// off[i]: where tensor i begins in the flat vector. Behind the last, off has
// the whole length.
void layers_offsets(const struct model_config *c, size_t *off);

// The results of a layer's forward that backward needs: 10 C numbers a token.
// Those of type void are in the model's format. (A slice has 2 C, and its share
// of qkv, att, pre and lse.) N = B*T rows. With recompute a layer has only its
// own `in`. forward_again() makes the rest, in one place for all layers.
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
// bytes. If the size would overflow, `used` gets an impossible value and keeps
// it, so that the allocation fails.
struct cutter {
    char *block; // NULL: only count
    size_t line, used;
};

void *cut(struct cutter *c, size_t n, size_t size);
float *cut_floats(struct cutter *c, size_t n);

// Cuts the memory of the layers of one room, and of the residual stream behind
// the last layer; returns that stream. Chunks use a room in turn. With
// recompute each layer has only its `in`, and all layers of all rooms share the
// rest. Without training they share one set. Shared memory is cut with room 0,
// into *shared. `layers` may be NULL: then the memory is only counted.
void *cut_room(struct cutter *c, const struct model_job *job, int room,
               struct layer *shared, struct layer *layers);

// Where a layer has dropout; that of the embedding is SITE_EMBED of layer 0.
enum site { SITE_EMBED, SITE_ATTENTION, SITE_PROJ, SITE_OUT };

// The dropout mask of a site. In evaluation `step` is NULL: no dropout.
struct mask layers_mask(const struct model_job *job,
                        const struct model_step *step, int layer,
                        enum site site);

#endif
