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

// Runs on rank l->workers. p holds the first parameters, job->n floats, the
// same as every worker's p. In each of job->steps steps it receives the
// workers' gradients and adds them in fp32, in the order of the workers:
// worker 0 first, the last worker last. If all sums are finite, it computes
//
//     p[i] -= lr * (sum[i] / (float)workers)
//
// If a sum is infinite or NaN, the step changes no parameter. Then it sends p
// to every worker. If a worker stops responding, it names the worker with
// lab_missing() and returns -1. Returns 0 after the last step.
int lab_serve(struct lab *l, const struct job *job, float *p);

// Runs on a worker, once a step. g: its gradients, job->n floats. p becomes the
// next parameters. Returns 0 or -1.
int lab_exchange(struct lab *l, const struct job *job, const float *g,
                 float *p);

#endif
