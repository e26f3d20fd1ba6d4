// ask.c - lab 15: the grader's calls of the functions of slices.c.

#include "labs/ask.h"

#include "labs/15-slices/calls.h"

void slice_shares(const int *speed, int w, size_t units, size_t *share)
{
    size_t all = (size_t)w;
    struct part parts[] = {{(void *)speed, all * sizeof *speed, PART_IN},
                           {&units, sizeof units, PART_IN},
                           {share, all * sizeof *share, PART_OUT}};
    ask(NULL, SLICE_SHARES, parts, 3, NULL, NULL);
}

int lab_exchange(struct lab *l, float *v, size_t n)
{
    struct part parts[] = {{v, n * sizeof *v, PART_BOTH}};
    return (int)ask(l, SLICE_EXCHANGE, parts, 1, NULL, NULL);
}

int slice_forward(struct lab *l, const struct mlp *m, const float *x,
                  const float *a, const float *b, const float *c, float *h,
                  float *y)
{
    size_t one = sizeof(float), all = m->rows * m->width * one;
    size_t slice = m->width * m->own * one;
    struct part parts[] = {{(void *)m, sizeof *m, PART_IN},
                           {(void *)x, all, PART_IN},
                           {(void *)a, slice, PART_IN},
                           {(void *)b, slice, PART_IN},
                           {(void *)c, m->width * one, PART_IN},
                           {h, m->rows * m->own * one, PART_OUT},
                           {y, all, PART_OUT}};
    return (int)ask(l, SLICE_FORWARD, parts, 7, NULL, NULL);
}

int slice_backward(struct lab *l, const struct mlp *m, const float *x,
                   const float *a, const float *b, const float *h,
                   const float *dy, float *dx, float *da, float *db, float *dc)
{
    size_t one = sizeof(float), all = m->rows * m->width * one;
    size_t slice = m->width * m->own * one;
    struct part parts[] = {{(void *)m, sizeof *m, PART_IN},
                           {(void *)x, all, PART_IN},
                           {(void *)a, slice, PART_IN},
                           {(void *)b, slice, PART_IN},
                           {(void *)h, m->rows * m->own * one, PART_IN},
                           {(void *)dy, all, PART_IN},
                           {dx, all, PART_OUT},
                           {da, slice, PART_OUT},
                           {db, slice, PART_OUT},
                           {dc, m->width * one, PART_OUT}};
    return (int)ask(l, SLICE_BACKWARD, parts, 10, NULL, NULL);
}
