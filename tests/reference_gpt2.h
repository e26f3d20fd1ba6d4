// reference_gpt2.h - GPT-2's forward pass in double precision, as plain as it
// can be written: what the fast kernels are tested against. Central differences
// of these functions are good to about 1e-9.

#ifndef TESTS_REFERENCE_GPT2_H
#define TESTS_REFERENCE_GPT2_H

#include "model/cpu/kernels.h"
#include "model/model.h"

void ref_linear(double *out, const double *in, const double *w, const double *b,
                int rows, int ins, int outs);
void ref_norm(double *out, const double *in, const double *w, const double *b,
              int rows, int C);
void ref_gelu(double *out, const double *in, int n);

// qkv (B,T,3C); the mask (may be NULL) drops probabilities.
void ref_attention(double *out, const double *qkv, int B, int T, int C, int NH,
                   const struct mask *mask);

// Cross-entropy of every row.
void ref_loss(double *loss, const double *logits, const int32_t *y, int rows,
              int V);

// Mean loss of the whole model, no dropout. logits (B*T, V) may be NULL.
double ref_gpt2(const struct model_config *c, const double *params,
                const int32_t *x, const int32_t *y, int B, int T,
                double *logits);

#endif
