// second.c - lab 15, another right solution: all messages of half a join are
// under way at once, and matrices are multiplied by one function.

#include "labs/15-slices/slices.h"

void slice_shares(const int *speed, int w, size_t units, size_t *share)
{
    for (int r = 0; r < w; r++)
        share[r] = 0;
    for (; units > 0; units--) {
        int next = w - 1;
        for (int r = w - 2; r >= 0; r--) {
            uint64_t mine = (uint64_t)(share[r] + 1) * (uint64_t)speed[next];
            uint64_t its = (uint64_t)(share[next] + 1) * (uint64_t)speed[r];
            next = mine <= its ? r : next;
        }
        share[next]++;
    }
}

static size_t begin(size_t n, int w, int r)
{
    return n * (size_t)r / (size_t)w;
}

static size_t bytes_of(size_t n, int w, int r)
{
    return (begin(n, w, r + 1) - begin(n, w, r)) * sizeof(float);
}

int lab_exchange(struct lab *l, float *v, size_t n)
{
    int w = l->workers, me = l->rank, k = 0;
    size_t bytes = bytes_of(n, w, me), own = bytes / sizeof *v;
    float *mine = v + begin(n, w, me);
    float *in = lab_alloc(l, own * (size_t)w, sizeof *in);
    struct lab_req q[LAB_REQUESTS];
    if (!in)
        return -1;
    for (int r = (me + 1) % w; r != me; r = (r + 1) % w)
        if (lab_isend(l, r, v + begin(n, w, r), bytes_of(n, w, r), &q[k++]))
            return -1;
    for (int r = (me + w - 1) % w; r != me; r = (r + w - 1) % w)
        if (lab_irecv(l, r, in + (size_t)r * own, bytes, &q[k++]))
            return -1;
    if (lab_wait(l, q, k))
        return -1;
    for (int r = 0; r < w; r++)
        for (size_t i = 0; r != me && i < own; i++)
            mine[i] += in[(size_t)r * own + i];
    k = 0;
    for (int r = (me + 1) % w; r != me; r = (r + 1) % w)
        if (lab_isend(l, r, mine, bytes, &q[k++]))
            return -1;
    for (int r = (me + w - 1) % w; r != me; r = (r + w - 1) % w)
        if (lab_irecv(l, r, v + begin(n, w, r), bytes_of(n, w, r), &q[k++]))
            return -1;
    return lab_wait(l, q, k);
}

// A matrix: element (i, j) is at p[i * down + j * right].
struct matrix {
    const float *p;
    size_t down, right;
};

// out (rows, columns) = a (rows, n) times b (n, columns).
static void multiply(float *out, size_t rows, size_t columns, size_t n,
                     struct matrix a, struct matrix b)
{
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++) {
            float sum = 0;
            for (size_t k = 0; k < n; k++)
                sum += a.p[i * a.down + k * a.right] *
                       b.p[k * b.down + j * b.right];
            out[i * columns + j] = sum;
        }
}

int slice_forward(struct lab *l, const struct mlp *m, const float *x,
                  const float *a, const float *b, const float *c, float *h,
                  float *y)
{
    size_t rows = m->rows, width = m->width, own = m->own;
    multiply(h, rows, own, width, (struct matrix){x, width, 1},
             (struct matrix){a, own, 1});
    for (size_t i = 0; i < rows * own; i++)
        h[i] = h[i] < 0 ? 0 : h[i];
    multiply(y, rows, width, own, (struct matrix){h, own, 1},
             (struct matrix){b, width, 1});
    for (size_t i = 0; l->rank == 0 && i < rows * width; i++)
        y[i] += c[i % width];
    return lab_exchange(l, y, rows * width);
}

int slice_backward(struct lab *l, const struct mlp *m, const float *x,
                   const float *a, const float *b, const float *h,
                   const float *dy, float *dx, float *da, float *db, float *dc)
{
    size_t rows = m->rows, width = m->width, own = m->own;
    float *dh = lab_alloc(l, rows * own, sizeof *dh);
    if (!dh)
        return -1;
    multiply(dh, rows, own, width, (struct matrix){dy, width, 1},
             (struct matrix){b, 1, width});
    for (size_t i = 0; i < rows * own; i++)
        dh[i] = h[i] > 0 ? dh[i] : 0;
    multiply(dx, rows, width, own, (struct matrix){dh, own, 1},
             (struct matrix){a, 1, own});
    multiply(da, width, own, rows, (struct matrix){x, 1, width},
             (struct matrix){dh, own, 1});
    multiply(db, own, width, rows, (struct matrix){h, 1, own},
             (struct matrix){dy, width, 1});
    for (size_t j = 0; j < width; j++) {
        dc[j] = 0;
        for (size_t i = 0; i < rows; i++)
            dc[j] += dy[i * width + j];
    }
    return lab_exchange(l, dx, rows * width);
}
