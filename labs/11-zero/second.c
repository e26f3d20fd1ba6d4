// second.c - lab 11, written from the handout alone: adds in place.

#include "labs/11-zero/zero.h"

// The memory of a worker, without the parameters.
struct own {
    size_t first, n; // my elements
    float *g;        // all my gradients of a step
    float *in;       // the others' gradients of my elements
    float *a, *b;    // the state of my elements
};

static size_t first_of(const struct zero *z, int r, int w)
{
    return z->n * (size_t)r / (size_t)w;
}

static size_t count_of(const struct zero *z, int r, int w)
{
    return first_of(z, r + 1, w) - first_of(z, r, w);
}

static int make(struct lab *l, const struct zero *z, struct own *o)
{
    int w = l->workers;
    o->first = first_of(z, l->rank, w);
    o->n = count_of(z, l->rank, w);
    o->g = lab_alloc(l, z->n, sizeof *o->g);
    o->in = lab_alloc(l, o->n * (size_t)(w - 1), sizeof *o->in);
    o->a = lab_alloc(l, o->n, sizeof *o->a);
    o->b = lab_alloc(l, o->n, sizeof *o->b);
    if (!o->g || !o->in || !o->a || !o->b)
        return -1;
    for (size_t i = 0; i < o->n; i++)
        o->a[i] = o->b[i] = 0;
    return 0;
}

// Sends every part of g to its owner, and sums my part, worker 0 first.
static int sum(struct lab *l, const struct zero *z, struct own *o)
{
    struct lab_req r[LAB_REQUESTS];
    int w = l->workers, k = 0;
    float *at = o->in, *mine = o->g + o->first;
    for (int c = 0; c < w; c++) {
        if (c == l->rank)
            continue;
        if (lab_isend(l, c, o->g + first_of(z, c, w),
                      count_of(z, c, w) * sizeof *o->g, &r[k++]) ||
            lab_irecv(l, c, at, o->n * sizeof *at, &r[k++]))
            return -1;
        at += o->n;
    }
    if (lab_wait(l, r, k))
        return -1;
    for (size_t i = 0; i < o->n; i++) {
        float own = mine[i], s = 0;
        const float *in = o->in + i;
        for (int c = 0; c < w; c++) {
            float v = own;
            if (c != l->rank) {
                v = *in;
                in += o->n;
            }
            s = c ? s + v : v;
        }
        mine[i] = s;
    }
    return 0;
}

// *all becomes the sum of the squares of all summed gradients, added in the
// same order on every worker.
static int squares(struct lab *l, const struct own *o, double *all)
{
    struct lab_req r[LAB_REQUESTS];
    double of[LAB_REQUESTS], mine = 0;
    int k = 0;
    for (size_t i = 0; i < o->n; i++) {
        double v = o->g[o->first + i];
        mine += v * v;
    }
    of[l->rank] = mine;
    for (int c = 0; c < l->workers; c++)
        if (c != l->rank && (lab_isend(l, c, &mine, sizeof mine, &r[k++]) ||
                             lab_irecv(l, c, &of[c], sizeof of[c], &r[k++])))
            return -1;
    if (lab_wait(l, r, k))
        return -1;
    *all = 0;
    for (int c = 0; c < l->workers; c++)
        *all += of[c];
    return 0;
}

// Sends my new parameters to all, and receives the other owners' ones.
static int hand_out(struct lab *l, const struct zero *z, const struct own *o,
                    float *p)
{
    struct lab_req r[LAB_REQUESTS];
    int w = l->workers, k = 0;
    for (int c = 0; c < w; c++)
        if (c != l->rank &&
            (lab_isend(l, c, p + o->first, o->n * sizeof *p, &r[k++]) ||
             lab_irecv(l, c, p + first_of(z, c, w),
                       count_of(z, c, w) * sizeof *p, &r[k++])))
            return -1;
    return lab_wait(l, r, k);
}

int zero_train(struct lab *l, const struct zero *z, float *p)
{
    struct own o;
    int number = 0;
    if (make(l, z, &o))
        return -1;
    for (int step = 0; step < z->steps; step++) {
        double s;
        z->gradients(z, l->rank, step, p, o.g);
        if (sum(l, z, &o) || squares(l, &o, &s))
            return -1;
        if (!isfinite(s))
            continue;
        z->update(p + o.first, o.g + o.first, o.a, o.b, o.n,
                  zero_scale(z, s, l->workers), ++number);
        if (hand_out(l, z, &o, p))
            return -1;
    }
    return 0;
}
