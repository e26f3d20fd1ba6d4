// overlap.c - lab 5: exchange gradients while backward still computes others.

#include "labs/05-overlap/overlap.h"

// One bucket.
int bucket_cut(struct bucket *out, int max, size_t n, size_t first, size_t size)
{
    (void)max;
    (void)first;
    (void)size;
    out[0] = (struct bucket){0, n};
    return 1;
}

void bucket_sizes(const struct lab *l, const struct layer *layers, int count,
                  size_t *first, size_t *size)
{
    (void)l;
    *first = 0;
    for (int i = 0; i < count; i++)
        *first += layers[i].n;
    *size = *first;
}

// Posts nothing before backward has ended.
int lab_ready(struct lab *l, struct step *s, int b)
{
    (void)l;
    (void)s;
    (void)b;
    return 0;
}

int lab_exchange(struct lab *l, struct step *s)
{
    for (int b = 0; b < s->count; b++)
        if (s->post(l, s, b))
            return -1;
    return s->join(l, s);
}

int lab_communicate(struct lab *l, struct step *s)
{
    for (int i = 0; i < s->count; i++) {
        int b;
        if (s->take(l, s, &b) || s->sum(l, s, b))
            return -1;
    }
    return s->done(l, s);
}
