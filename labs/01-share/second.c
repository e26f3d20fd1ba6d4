// second.c - lab 1, written from the handout alone: a formula chooses a tree or
// a chain.

#include "labs/01-share/share.h"

#include <math.h>

size_t share_window(const struct share *s, size_t step, int rank, int i)
{
    size_t together = (size_t)s->workers * (size_t)s->batch;
    size_t at = step * together + (size_t)rank * (size_t)s->batch + (size_t)i;
    return s->order(s, at / s->windows, at % s->windows);
}

// The rank of the worker that is `place` places after the root.
static int worker(const struct lab *l, int root, int place)
{
    return (root + place) % l->workers;
}

// In each round every worker that has the bytes sends them to one that has not.
static int tree(struct lab *l, void *p, size_t bytes, int root)
{
    int place = (l->rank - root + l->workers) % l->workers;
    for (int have = 1; have < l->workers; have *= 2)
        if (place >= have && place < 2 * have) {
            if (lab_recv(l, worker(l, root, place - have), p, bytes))
                return -1;
        } else if (place < have && place + have < l->workers) {
            if (lab_send(l, worker(l, root, place + have), p, bytes))
                return -1;
        }
    return 0;
}

// Each worker receives a piece while it sends the previous piece to the next
// worker.
static int chain(struct lab *l, char *p, size_t bytes, int root, size_t pieces)
{
    int place = (l->rank - root + l->workers) % l->workers;
    int from = worker(l, root, place + l->workers - 1);
    int to = worker(l, root, place + 1);
    bool last = place == l->workers - 1;
    struct lab_req in, out;
    for (size_t k = 0; k <= pieces; k++) {
        size_t at = bytes * k / pieces,
               before = k ? bytes * (k - 1) / pieces : 0;
        bool recvs = place && k < pieces, sends = !last && k;
        size_t end = bytes * (k + 1) / pieces;
        if ((recvs && lab_irecv(l, from, p + at, end - at, &in)) ||
            (sends && lab_isend(l, to, p + before, at - before, &out)) ||
            (recvs && lab_wait(l, &in, 1)) || (sends && lab_wait(l, &out, 1)))
            return -1;
    }
    return 0;
}

int lab_bcast(struct lab *l, void *p, size_t bytes, int root)
{
    double w = l->workers, s = (double)bytes, a = l->alpha_s;
    double b = l->bytes_per_s;
    if (l->workers == 1 || bytes == 0)
        return 0;
    // (w-2+m)(a + S/mB) is least at m = sqrt((w-2) S / aB).
    double m = floor(sqrt((w - 2) * s / (a * b)) + 0.5);
    m = m < 1 ? 1 : m > s ? s : m;
    if ((w - 2 + m) * (a + s / (m * b)) < ceil(log2(w)) * (a + s / b))
        return chain(l, p, bytes, root, (size_t)m);
    return tree(l, p, bytes, root);
}
