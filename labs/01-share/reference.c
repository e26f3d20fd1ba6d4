// reference.c - lab 1: a window is a position in the endless sequence of all
// epochs. A broadcast uses a tree for short data, and a chain of pieces for
// long data.

#include "labs/01-share/share.h"

#include <math.h>

size_t share_window(const struct share *s, size_t step, int rank, int i)
{
    size_t all = (size_t)s->workers * (size_t)s->batch;
    int place = rank * s->batch + i;
    size_t at = step * all + (size_t)place;
    size_t epoch = at / s->windows;
    return s->order(s, epoch, at % s->windows);
}

// Workers are counted from the root. Before round k the first 2^k workers have
// the bytes. In round k worker i of these sends them to worker i + 2^k.
static int tree(struct lab *l, char *p, size_t bytes, int root)
{
    int w = l->workers, me = (l->rank - root + w) % w;
    for (int far = 1; far < w; far *= 2) {
        int to = (l->rank + far) % w, from = (l->rank - far + w) % w;
        if (me < far && me + far < w && lab_send(l, to, p, bytes))
            return -1;
        if (me >= far && me < 2 * far && lab_recv(l, from, p, bytes))
            return -1;
    }
    return 0;
}

// Receives each piece from the left while it sends the previous piece to the
// right.
static int chain(struct lab *l, char *p, size_t bytes, int root, size_t pieces)
{
    int w = l->workers, me = (l->rank - root + w) % w;
    int right = (l->rank + 1) % w, left = (l->rank + w - 1) % w;
    for (size_t m = 0; m <= pieces; m++) {
        struct lab_req r[2] = {{NULL, 0}, {NULL, 0}};
        size_t a = bytes * m / pieces, b = bytes * (m + 1) / pieces;
        if (me > 0 && m < pieces && lab_irecv(l, left, p + a, b - a, &r[0]))
            return -1;
        size_t out = me > 0 ? m - 1 : m; // at first m - 1 wraps around
        a = bytes * out / pieces;
        b = bytes * (out + 1) / pieces;
        if (me < w - 1 && out < pieces &&
            lab_isend(l, right, p + a, b - a, &r[1]))
            return -1;
        if (lab_wait(l, r, 2))
            return -1;
    }
    return 0;
}

int lab_bcast(struct lab *l, void *p, size_t bytes, int root)
{
    int w = l->workers, rounds = 0;
    double a = l->alpha_s, t = (double)bytes / l->bytes_per_s;
    while (1 << rounds < w)
        rounds++;
    double best = floor(sqrt((w - 2) * t / a));
    double pieces = w < 3 || best < 1 ? 1 : fmin(best, (double)bytes);
    double chain_s = (w - 2 + pieces) * (a + t / pieces);
    if (w > 1 && bytes > 0 && chain_s < rounds * (a + t))
        return chain(l, p, bytes, root, (size_t)pieces);
    return tree(l, p, bytes, root);
}
