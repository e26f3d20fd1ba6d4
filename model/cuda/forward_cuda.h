// forward_cuda.h - the three parts of a step on a GPU, and what they share.

#ifndef MODEL_CUDA_FORWARD_CUDA_H
#define MODEL_CUDA_FORWARD_CUDA_H

#include "model/cuda/state_cuda.h"

// The weights of a tensor, in the model's format.
static inline const void *weight_at(const struct cuda_model *m, int tensor)
{
    return (const char *)m->weights +
           m->off[tensor] * dtype_bytes(m->job.precision);
}

// forward_cuda.c: the input of a layer's attention for B sequences of T tokens.
struct cuda_attention cuda_attention_at(const struct cuda_model *m, int B,
                                        int T, const struct model_step *step,
                                        int layer);

// forward_cuda.c: computes all layers for the B sequences of T tokens in m->x.
// Writes the residual stream's end to m->last and ln_f's output to m->norm.
// With step NULL there is no dropout.
void cuda_forward(struct cuda_model *m, int B, int T,
                  const struct model_step *step);

// forward_cuda.c: computes again what backward needs of layer i, from the
// residual stream at its entry. The bits are those of the step's forward.
// Overwrites m->norm and m->branch.
void cuda_forward_again(struct cuda_model *m, int i,
                        const struct model_step *step);

// head_cuda.c: m->mean_loss = the mean loss of the first `rows` rows of
// m->norm. With a step it also writes the gradient of m->norm to m->branch and
// the head's share of wte's gradient.
void cuda_head(struct cuda_model *m, size_t rows,
               const struct model_step *step);

// m->logits = the logits of `rows` <= m->slice rows of m->norm, from row `row`
// on. They are in the model's format; with `fp32` (one row only) in fp32.
void cuda_head_logits(struct cuda_model *m, size_t row, int rows, bool fp32);

// backward_cuda.c: computes all gradients, from the head's in m->branch on.
void cuda_backward(struct cuda_model *m, const struct model_step *step);

#endif
