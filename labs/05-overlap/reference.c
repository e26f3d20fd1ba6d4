// reference.c - lab 5: posts buckets in one order, each as soon as possible.

#include "labs/05-overlap/overlap.h"

#include <math.h>

int bucket_cut(struct bucket *out, int max, size_t n, size_t first, size_t size)
{
    int count = 0;
    for (size_t left = n; left > 0; count++) {
        size_t most = count == 0 ? first : size;
        size_t len = left < most ? left : most;
        if (count == max)
            return -1;
        left -= len;
        out[count] = (struct bucket){left, len};
    }
    return count;
}

// The seconds from the end of backward to the end of the last sum.
static double exposed(const struct lab *l, const struct layer *layers,
                      int count, size_t n, size_t first, size_t size)
{
    double now = 0, end = 0;
    size_t left = n, sent = n;
    for (int i = 0; i < count; i++) {
        now += layers[i].seconds;
        left -= layers[i].n;
        while (sent > left) {
            size_t most = sent == n ? first : size;
            size_t len = sent < most ? sent : most;
            if (sent - len < left)
                break;
            sent -= len;
            double each = (double)len * 4 / l->workers / l->bytes_per_s;
            end = fmax(end, now) + 2 * (l->workers - 1) * (l->alpha_s + each);
        }
    }
    return end - now;
}

void bucket_sizes(const struct lab *l, const struct layer *layers, int count,
                  size_t *first, size_t *size)
{
    size_t n = 0;
    for (int i = 0; i < count; i++)
        n += layers[i].n;
    double best = INFINITY;
    for (size_t m = 1; m <= 100; m++)
        for (size_t part = 1; part <= 4; part *= 2) {
            size_t s = (n + m - 1) / m, f = (s + part - 1) / part;
            double t = exposed(l, layers, count, n, f, s);
            if (t < best) {
                best = t;
                *first = f;
                *size = s;
            }
        }
}

int lab_ready(struct lab *l, struct step *s, int b)
{
    s->ready[b] = true;
    for (; s->next < s->count && s->ready[s->next]; s->next++)
        if (s->post(l, s, s->next))
            return -1;
    return 0;
}

int lab_exchange(struct lab *l, struct step *s)
{
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
