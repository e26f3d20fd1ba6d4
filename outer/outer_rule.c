// outer_rule.c - the three loops of the outer step.

#include "outer/outer_rule.h"

void outer_mean(float *v, size_t n, float by)
{
#pragma omp parallel for simd schedule(static)
    for (size_t i = 0; i < n; i++)
        v[i] /= by;
}

void outer_difference(float *p, const float *start, size_t n)
{
#pragma omp parallel for simd schedule(static)
    for (size_t i = 0; i < n; i++)
        p[i] = start[i] - p[i];
}

void outer_apply(const struct outer_step *s, float *p, float *start,
                 float *velocity, size_t n, float by)
{
    const float lr = s->lr, momentum = s->momentum;
#pragma omp parallel for simd schedule(static)
    for (size_t i = 0; i < n; i++) {
        float d = p[i] / by, step = d;
        if (velocity) {
            velocity[i] = momentum * velocity[i] + d;
            step = d + momentum * velocity[i];
        }
        p[i] = start[i] = start[i] - lr * step;
    }
}
