// second.c - lab 5, written from the handout alone: tries every number of equal
// buckets.

#include "labs/05-overlap/overlap.h"

int bucket_cut(struct bucket *out, int max, size_t n, size_t first, size_t size)
{
    int count = 0;
    for (size_t len; n > 0; n -= len, count++) {
        len = count ? size : first;
        len = len > n ? n : len;
        if (count >= max)
            return -1;
        out[count] = (struct bucket){n - len, len};
    }
    return count;
}

// The exposed seconds after backward, with buckets of `size` elements.
static double left(const struct lab *l, const struct layer *layers, int count,
                   size_t n, size_t size)
{
    double w = l->workers, now = 0, summed = 0;
    size_t ready = 0, sent = 0;
    for (int i = 0; i < count; i++) {
        now += layers[i].seconds;
        ready += layers[i].n;
        while (sent < n && (ready - sent >= size || ready == n)) {
            size_t some = n - sent < size ? n - sent : size;
            double bytes = (double)some * sizeof(float);
            summed = (summed > now ? summed : now) +
                     2 * (w - 1) * (l->alpha_s + bytes / (w * l->bytes_per_s));
            sent += some;
        }
    }
    return summed - now;
}

void bucket_sizes(const struct lab *l, const struct layer *layers, int count,
                  size_t *first, size_t *size)
{
    size_t n = 0;
    for (int i = 0; i < count; i++)
        n += layers[i].n;
    *size = n;
    for (size_t k = 2; k <= MOST_BUCKETS && k <= n; k++) {
        size_t some = (n + k - 1) / k;
        if (left(l, layers, count, n, some) < left(l, layers, count, n, *size))
            *size = some;
    }
    *first = *size;
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
    int b;
    for (int i = 0; i < s->count; i++)
        if (s->take(l, s, &b) || s->sum(l, s, b))
            return -1;
    return s->done(l, s);
}
