// tiles_plain.h - the operations of model/cpu/tiles.h as loops.
//
// Where the processor would raise an exception, a CHECK fails.

#pragma once

#include "base/base.h"
#include "base/half.h"

#include <math.h>
#include <string.h>

struct tiles {
    struct tile_shapes shapes;
    unsigned char data[TILES][TILE_ROWS][TILE_BYTES];
};

static inline void tile_config(struct tiles *x, const struct tile_shapes *s)
{
    CHECK(s->palette == TILE_PALETTE && s->start_row == 0);
    for (int i = 0; i < 14; i++)
        CHECK(s->zero[i] == 0);
    for (int i = 0; i < TILES; i++) {
        CHECK(s->rows[i] <= TILE_ROWS && s->bytes[i] <= TILE_BYTES);
        CHECK(!s->rows[i] == !s->bytes[i]);
    }
    for (int i = TILES; i < 16; i++)
        CHECK(s->rows[i] == 0 && s->bytes[i] == 0);
    memset(x->data, 0, sizeof x->data);
    x->shapes = *s;
}

static inline void tile_release(struct tiles *x)
{
    memset(x, 0, sizeof *x);
}

static inline void tile_check(const struct tiles *x, int t)
{
    CHECK(x->shapes.palette == TILE_PALETTE);
    CHECK(t >= 0 && t < TILES && x->shapes.rows[t] > 0);
}

static inline void tile_zero(struct tiles *x, int t)
{
    tile_check(x, t);
    memset(x->data[t], 0, sizeof x->data[t]);
}

// Bytes beyond the tile's shape become zero.
static inline void tile_load(struct tiles *x, int t, const void *from,
                             size_t stride)
{
    tile_zero(x, t);
    for (int r = 0; r < x->shapes.rows[t]; r++)
        memcpy(x->data[t][r], (const char *)from + r * stride,
               x->shapes.bytes[t]);
}

static inline void tile_store(const struct tiles *x, int t, void *to,
                              size_t stride)
{
    tile_check(x, t);
    for (int r = 0; r < x->shapes.rows[t]; r++)
        memcpy((char *)to + r * stride, x->data[t][r], x->shapes.bytes[t]);
}

static inline float tile_flush(float x)
{
    return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x;
}

// The k-th bf16 number of a row.
static inline float tile_number(const unsigned char *row, int k)
{
    uint16_t h;
    memcpy(&h, row + 2 * k, sizeof h);
    return tile_flush(bf16_to_float(h));
}

static inline void tile_dot(struct tiles *x, int c, int a, int b)
{
    const struct tile_shapes *s = &x->shapes;
    tile_check(x, a);
    tile_check(x, b);
    tile_check(x, c);
    CHECK(c != a && c != b && a != b);
    CHECK(s->rows[a] == s->rows[c] && s->bytes[b] == s->bytes[c]);
    CHECK(s->bytes[a] == 4 * s->rows[b] && s->bytes[b] % 4 == 0);
    for (int m = 0; m < s->rows[c]; m++)
        for (int n = 0; n < s->bytes[c] / 4; n++) {
            float sum[2] = {0, 0}, *at = (float *)(void *)x->data[c][m] + n;
            for (int k = 0; k < s->rows[b]; k++)
                for (int odd = 0; odd < 2; odd++)
                    sum[odd] =
                        tile_flush(fmaf(tile_number(x->data[a][m], 2 * k + odd),
                                        tile_number(x->data[b][k], 2 * n + odd),
                                        sum[odd]));
            float both = tile_flush(sum[0] + sum[1]), old;
            memcpy(&old, at, sizeof old);
            old = tile_flush(tile_flush(old) + both);
            memcpy(at, &old, sizeof old);
        }
}
