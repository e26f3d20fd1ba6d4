// server.h - lab 2: the functions that server.c defines.

#ifndef LABS_SERVER_H
#define LABS_SERVER_H

#include "labs/lab.h"

// Workers and server know these numbers before they begin.
struct job {
    size_t n;  // parameters, and gradients of each worker
    int steps; // exchanges until the end
    float lr;  // learning rate
};

// On rank l->workers. p holds the parameters, as every worker's p does. In each
// of job->steps steps: take in the workers' gradients and add them in fp32, in
// the order of the workers: worker 0 first, the last worker last. Where all
// sums are finite
//
//     p[i] -= lr * (sum[i] / (float)workers)
//
// Where a sum is infinite or NaN the whole step changes nothing. Then every
// worker gets p. Where a worker falls silent: name it with lab_missing(), and
// return -1.
int lab_serve(struct lab *l, const struct job *job, float *p);

// On a worker: one step. g are its gradients; p becomes the next parameters.
int lab_exchange(struct lab *l, const struct job *job, const float *g,
                 float *p);

#endif
