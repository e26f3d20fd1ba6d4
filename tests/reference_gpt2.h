// reference_gpt2.h - GPT-2's forward pass in double precision, written as
// simply as possible. The fast kernels are tested against it. Central
// differences of these functions have errors of about 1e-9.

#pragma once

#include "model/kernels.h"
#include "model/model.h"

// A linear layer: in (rows, ins), w (ins, outs), b (outs) or NULL, out (rows,
// outs).
void ref_linear(double *out, const double *in, const double *w, const double *b,
                int rows, int ins, int outs);
// LayerNorm: in and out (rows, C), w and b (C).
void ref_norm(double *out, const double *in, const double *w, const double *b,
              int rows, int C);
// GELU of n numbers. `out` may be the same array as `in`.
void ref_gelu(double *out, const double *in, int n);

// Attention: qkv (B, T, 3C), out (B, T, C). mask: the dropout of probabilities;
// NULL: none.
void ref_attention(double *out, const double *qkv, int B, int T, int C, int NH,
                   const struct mask *mask);

// Cross-entropy of every row: logits (rows, V), targets y and loss (rows).
void ref_loss(double *loss, const double *logits, const int32_t *y, int rows,
              int V);

// Returns the mean loss of the whole model on tokens x and targets y, both (B,
// T), without dropout. logits (B*T, V) may be NULL.
double ref_gpt2(const struct model_config *c, const double *params,
                const int32_t *x, const int32_t *y, int B, int T,
                double *logits);
