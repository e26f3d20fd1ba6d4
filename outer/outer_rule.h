// outer_rule.h - the outer step: makes the next common parameters from those of
// all workers.
//
//     d := the mean of start - p, over all workers
//     v := momentum v + d
//     p := start - lr (d + momentum v), which is the next start
//
// `start` is the parameters that all workers had after the previous outer step.
// This is DiLoCo (Douillard et al., "DiLoCo: Distributed Low-Communication
// Training of Language Models", 2023), which uses d as a gradient: SGD with
// Nesterov's momentum as in PyTorch. With lr=1 and momentum=0 p becomes the
// mean of all workers' p, and is computed so. That is local SGD (Stich, "Local
// SGD Converges Fast and Communicates Little", ICLR 2019).
//
// All vectors are in host memory and have n elements. Every worker computes the
// same bits.

#pragma once

#include <stddef.h>

// v := v / by.
void outer_mean(float *v, size_t n, float by);

// p := start - p, the difference that travels.
void outer_difference(float *p, const float *start, size_t n);

struct outer_step {
    float lr, momentum;
};

// p holds the sum of all workers' differences; p / by is d. Sets p and start to
// the next common parameters. velocity is NULL if momentum is 0.
void outer_apply(const struct outer_step *s, float *p, float *start,
                 float *velocity, size_t n, float by);
