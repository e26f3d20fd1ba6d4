// outer.c - lab 13: workers that train apart and agree seldom.

#include "labs/13-outer/outer.h"

// The mean, whatever lr and momentum are.
void outer_step(float lr, float momentum, const float *mean, float *start,
                float *velocity, size_t n)
{
    (void)lr;
    (void)momentum;
    (void)velocity;
    for (size_t i = 0; i < n; i++)
        start[i] = mean[i];
}

// Trains alone.
int outer_train(struct lab *l, const struct outer *o, float *p)
{
    (void)l;
    for (int s = 1; s <= o->steps; s++)
        o->inner(o, s, p);
    return 0;
}
