// reference.c - lab 2: receives all gradients at the same time, and adds them
// in the order of the workers.

#include "labs/02-server/server.h"

#include <math.h>

// The first of n requests that failed.
static int failed(const struct lab_req *r, int n)
{
    int i = 0;
    while (i < n - 1 && !r[i].err)
        i++;
    return i;
}

static void update(const struct lab *l, const struct job *job, const float *g,
                   float *sum, float *p)
{
    int w = l->workers;
    bool finite = true;
    for (size_t i = 0; i < job->n; i++) {
        sum[i] = 0;
        for (int k = 0; k < w; k++) {
            float x = g[(size_t)k * job->n + i];
            sum[i] = k == 0 ? x : sum[i] + x;
        }
        finite = finite && isfinite(sum[i]);
    }
    for (size_t i = 0; finite && i < job->n; i++)
        p[i] -= job->lr * (sum[i] / (float)w);
}

int lab_serve(struct lab *l, const struct job *job, float *p)
{
    int w = l->workers;
    size_t n = job->n, bytes = n * sizeof *p;
    float *g = lab_alloc(l, n * (size_t)w, sizeof *g);
    float *sum = lab_alloc(l, n, sizeof *sum);
    struct lab_req *r = lab_alloc(l, (size_t)w, sizeof *r);
    if (!g || !sum || !r)
        return -1;
    for (int step = 0; step < job->steps; step++) {
        for (int k = 0; k < w; k++)
            if (lab_irecv(l, k, g + (size_t)k * n, bytes, &r[k]))
                return -1;
        if (lab_wait(l, r, w))
            return lab_missing(l, failed(r, w), "its gradients");
        update(l, job, g, sum, p);
        for (int k = 0; k < w; k++)
            if (lab_isend(l, k, p, bytes, &r[k]))
                return -1;
        if (lab_wait(l, r, w))
            return lab_missing(l, failed(r, w), "to receive parameters");
    }
    return 0;
}

int lab_exchange(struct lab *l, const struct job *job, const float *g, float *p)
{
    size_t bytes = job->n * sizeof *p;
    if (lab_send(l, l->workers, g, bytes) || lab_recv(l, l->workers, p, bytes))
        return -1;
    return 0;
}
