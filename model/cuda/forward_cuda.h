// forward_cuda.h - the three parts of a step on a GPU, and what they share.

#ifndef MODEL_CUDA_FORWARD_CUDA_H
#define MODEL_CUDA_FORWARD_CUDA_H

#include "model/cuda/state_cuda.h"

static inline const void *weight_at(const struct cuda_model *m, int tensor)
{
    return (const char *)m->weights +
           m->off[tensor] * dtype_bytes(m->job.precision);
}

struct cuda_attention cuda_attention_at(const struct cuda_model *m, int B,
                                        int T, const struct model_step *step,
                                        int layer);

// forward_cuda.c: the residual stream's end for the B sequences of T tokens in
// m->x; m->norm holds ln_f's output.
void cuda_forward(struct cuda_model *m, int B, int T,
                  const struct model_step *step);

// forward_cuda.c: what backward needs of layer i once more, from the residual
// stream at its entry, with the bits of step's forward. Spoils m->norm and
// m->branch.
void cuda_forward_again(struct cuda_model *m, int i,
                        const struct model_step *step);

// head_cuda.c: the mean loss of `rows` rows of m->norm into m->mean_loss. With
// a step, also the gradient of m->norm into m->branch, and wte's share.
void cuda_head(struct cuda_model *m, size_t rows,
               const struct model_step *step);

// m->logits of `rows` rows of m->norm from `row` on; rows <= m->slice. In the
// model's format, or one row in fp32.
void cuda_head_logits(struct cuda_model *m, size_t row, int rows, bool fp32);

// backward_cuda.c: all gradients, from m->branch down to wte.
void cuda_backward(struct cuda_model *m, const struct model_step *step);

#endif
