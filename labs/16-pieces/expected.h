// expected.h - lab 16: what grade.c expects of pieces and of attention.
//
// The attention is that of one worker with the whole sequence, in double
// precision. A student's file may not include this header.

#ifndef LABS_PIECES_EXPECTED_H
#define LABS_PIECES_EXPECTED_H

#include "labs/term.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

// The tokens of a piece, and the first of them.
static inline size_t length(size_t tokens, int w, int piece)
{
    size_t pieces = 2 * (size_t)w;
    size_t place = (size_t)lab_place(LAB_LONGER, piece, 2 * w);
    return (tokens + pieces - 1 - place) / pieces;
}

static inline size_t first(size_t tokens, int w, int piece)
{
    size_t at = 0;
    for (int i = 0; i < piece; i++)
        at += length(tokens, w, i);
    return at;
}

// The scores of a piece's queries.
static inline size_t scores(size_t tokens, int w, int piece)
{
    size_t at = first(tokens, w, piece), sum = 0;
    for (size_t t = at; t < at + length(tokens, w, piece); t++)
        sum += t + 1;
    return sum;
}

// Whether the last query of a piece sees the first key of another one.
static inline bool sees(size_t tokens, int w, int query, int key)
{
    size_t n = length(tokens, w, query);
    return n && length(tokens, w, key) &&
           first(tokens, w, key) < first(tokens, w, query) + n;
}

// A worker's piece of the first half, or its second one.
static inline int its(int w, int rank, int second)
{
    int low = lab_place(LAB_LOW, rank, w);
    return second ? 2 * w - 1 - low : low;
}

// The tokens of a worker, and the place of number i of them in the sequence.
static inline size_t owned(size_t tokens, int w, int rank)
{
    return length(tokens, w, its(w, rank, 0)) +
           length(tokens, w, its(w, rank, 1));
}

static inline size_t token(size_t tokens, int w, int rank, size_t i)
{
    size_t n = length(tokens, w, its(w, rank, 0));
    return i < n ? first(tokens, w, its(w, rank, 0)) + i
                 : first(tokens, w, its(w, rank, 1)) + i - n;
}

// The logarithm to the base of this term.
static inline double logarithm(double natural)
{
    static const double bases[] = {0, 2, 10};
    return LAB_LSE ? natural / log(bases[LAB_LSE]) : natural;
}

// Adds the attention of token t to out (width), which is 0. Returns its lse.
static inline double attention_of(const float *q, const float *k,
                                  const float *v, size_t t, size_t width,
                                  double *out)
{
    double most = -INFINITY, sum = 0;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i <= t; i++) {
            double x = 0;
            for (size_t c = 0; c < width; c++)
                x += (double)q[t * width + c] * (double)k[i * width + c];
            x /= sqrt((double)width);
            most = pass ? most : fmax(most, x);
            sum += pass ? exp(x - most) : 0;
            for (size_t c = 0; pass && c < width; c++)
                out[c] += exp(x - most) * (double)v[i * width + c];
        }
    for (size_t c = 0; c < width; c++)
        out[c] /= sum;
    return logarithm(most + log(sum));
}

#endif
