// outer_rule.h - the outer step: what becomes of the workers' parameters.
//
//     average     p := the mean of all workers' p
//     nesterov    d := the mean of start - p, over all workers
//                 v := momentum v + d
//                 p := start - lr (d + momentum v), which is the next start
//
// `start` is what all workers had after the outer step before. The first is
// local SGD (Stich, "Local SGD Converges Fast and Communicates Little", ICLR
// 2019), the second DiLoCo (Douillard et al., "DiLoCo: Distributed
// Low-Communication Training of Language Models", 2023), which takes d for a
// gradient: SGD with Nesterov's momentum as in PyTorch. With lr=1 and
// momentum=0 it is the mean, too.
//
// Host memory; n elements each. The same bits on every worker.

#ifndef OUTER_OUTER_RULE_H
#define OUTER_OUTER_RULE_H

#include <stddef.h>

// v := v / by.
void outer_mean(float *v, size_t n, float by);

// p := start - p: what travels.
void outer_way(float *p, const float *start, size_t n);

struct outer_step {
    float lr, momentum;
};

// p holds the sum of all workers' ways; p / by is d. velocity is NULL where
// momentum is 0.
void outer_apply(const struct outer_step *s, float *p, float *start,
                 float *velocity, size_t n, float by);

#endif
