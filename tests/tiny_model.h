// tiny_model.h - a GPT-2 of two layers, its weights, tokens and memory.

#pragma once

#include "model/model.h"

enum { ROWS = 3, TOKENS = 11 };

extern const struct model_config tiny;

// A model, its memory, and tokens for it.
struct bench {
    struct model_job job;
    struct model *m;
    size_t n;
    float *params, *grads;
    int32_t *x, *y;
    struct model_step step;
};

// Opens a training model of B rows of T tokens; end() closes it.
struct bench begin(struct model_config c, enum dtype precision, int B, int T);
void end(struct bench *b);

// Returns the loss of b->step, and adds its gradients to b->grads.
float train(struct bench *b);

// A copy of x[0..n). The caller frees it.
float *copy(const float *x, size_t n);

// |got - want| / |want|
double distance(const float *got, const float *want, size_t n);
