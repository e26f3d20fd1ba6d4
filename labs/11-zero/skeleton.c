// zero.c - lab 11: each worker updates a part of the parameters.

#include "labs/11-zero/zero.h"

// Every worker sends all its gradients to all others, and updates everything.
int zero_train(struct lab *l, const struct zero *z, float *p)
{
    int w = l->workers;
    size_t n = z->n;
    float *all = lab_alloc(l, n * (size_t)w, sizeof *all);
    float *a = lab_alloc(l, n, sizeof *a), *b = lab_alloc(l, n, sizeof *b);
    if (!all || !a || !b)
        return -1;
    for (size_t i = 0; i < n; i++)
        a[i] = b[i] = 0;
    for (int step = 0; step < z->steps; step++) {
        struct lab_req r[LAB_REQUESTS];
        float *mine = all + (size_t)l->rank * n;
        int k = 0;
        z->gradients(z, l->rank, step, p, mine);
        for (int c = 0; c < w; c++)
            if (c != l->rank &&
                (lab_isend(l, c, mine, n * sizeof *mine, &r[k++]) ||
                 lab_irecv(l, c, all + (size_t)c * n, n * sizeof *all,
                           &r[k++])))
                return -1;
        if (lab_wait(l, r, k))
            return -1;
        for (size_t i = 0; i < n; i++)
            for (int c = 1; c < w; c++)
                all[i] += all[(size_t)c * n + i];
        z->update(p, all, a, b, n, 1 / (float)w, step + 1);
    }
    return 0;
}
