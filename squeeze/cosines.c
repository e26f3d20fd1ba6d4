// cosines.c - computes what cosines.h promises.

#include "squeeze/cosines.h"

#include "base/base.h"
#include "base/clones.h"
#include "squeeze/squeeze.h"

#include <math.h>
#include <string.h>

enum { SIDE = 64, CHUNK = SIDE * SIDE, WORD = 32 };

// The transform of a side: row k of `to` is a cosine of k half-waves; `back` is
// `to` transposed, which is its inverse.
struct basis {
    float to[CHUNK], back[CHUNK];
};

struct room {
    struct basis down, across;
    float x[CHUNK], y[CHUNK], half[CHUNK];
    uint32_t entries[2 * CHUNK], list[CHUNK]; // of squeeze_topk
    float count[CHUNK];
};

static size_t demo_scratch(size_t n)
{
    (void)n;
    return sizeof(struct room);
}

static size_t side_of(size_t n)
{
    size_t side = SIDE;
    while (n % side)
        side--;
    return side;
}

struct demo_grid demo_grid(const struct sync_settings *s, size_t n, size_t rows)
{
    size_t height = rows ? rows : 1, width = n / height;
    struct demo_grid g = {.rows = side_of(height), .cols = side_of(width)};
    g.down = height / g.rows;
    g.across = width / g.cols;
    g.k = squeeze_entries(s, g.rows * g.cols);
    while ((size_t)1 << g.bits < g.rows * g.cols)
        g.bits++;
    return g;
}

static size_t entries(const struct demo_grid *g)
{
    return g->down * g->across * g->k;
}

static size_t index_words(const struct demo_grid *g)
{
    return (entries(g) * g->bits + WORD - 1) / WORD;
}

size_t demo_bytes(const struct demo_grid *g)
{
    return entries(g) * sizeof(float) + index_words(g) * sizeof(uint32_t);
}

// ---- indices

// Indices of no bits have no words.
static void put_bits(uint32_t *words, size_t i, unsigned bits, uint32_t value)
{
    size_t at = i * bits, shift = at % WORD;
    if (bits == 0)
        return;
    words[at / WORD] |= value << shift;
    if (shift + bits > WORD)
        words[at / WORD + 1] |= value >> (WORD - shift);
}

static uint32_t get_bits(const uint32_t *words, size_t i, unsigned bits)
{
    size_t at = i * bits, shift = at % WORD;
    if (bits == 0)
        return 0;
    uint32_t value = words[at / WORD] >> shift;
    if (shift + bits > WORD)
        value |= words[at / WORD + 1] << (WORD - shift);
    return value & (((uint32_t)1 << bits) - 1);
}

static const uint32_t *indices(const struct demo_grid *g, const void *message)
{
    return (const uint32_t *)message + entries(g);
}

int demo_check(const struct demo_grid *g, const void *message)
{
    const uint32_t *words = indices(g, message);
    size_t size = g->rows * g->cols, end = entries(g) * g->bits % WORD;
    uint32_t last = 0;
    for (size_t i = 0; i < entries(g); i++) {
        uint32_t index = get_bits(words, i, g->bits);
        if (index >= size)
            return fail("entry %zu has index %u, in a chunk of %zu", i, index,
                        size);
        if (i % g->k && index <= last)
            return fail("entry %zu has index %u after %u", i, index, last);
        last = index;
    }
    return end && words[index_words(g) - 1] >> end
               ? fail("it has bits behind the last index")
               : 0;
}

// ---- the transform

// cos(pi m / 2n). A quarter of a wave stands for all, so zeros are exact.
static double cosine(size_t m, size_t n)
{
    const double pi = 3.14159265358979323846;
    m %= 4 * n;
    if (m > 2 * n)
        m = 4 * n - m;
    if (m > n)
        return -cosine(2 * n - m, n);
    return m == n ? 0 : cos(pi * (double)m / (2 * (double)n));
}

static void make_basis(struct basis *b, size_t n)
{
    float wave[4 * SIDE];
    for (size_t m = 0; m < 4 * n; m++)
        wave[m] = (float)(sqrt(2.0 / (double)n) * cosine(m, n));
    for (size_t k = 0; k < n; k++)
        for (size_t j = 0; j < n; j++) {
            float x = k ? wave[(2 * j + 1) * k % (4 * n)]
                        : (float)sqrt(1 / (double)n);
            b->to[k * n + j] = b->back[j * n + k] = x;
        }
}

static void make_bases(const struct demo_grid *g, struct room *r)
{
    make_basis(&r->down, g->rows);
    make_basis(&r->across, g->cols);
}

// out (m x p) = a (m x n) times b (n x p). Zeros of a cost nothing.
VECTOR_CLONES
static void product(const float *restrict a, const float *restrict b, size_t m,
                    size_t n, size_t p, float *restrict out)
{
    memset(out, 0, m * p * sizeof *out);
    for (size_t i = 0; i < m; i++)
        for (size_t k = 0; k < n; k++) {
            float by = a[i * n + k];
            if (by == 0)
                continue;
            for (size_t j = 0; j < p; j++)
                out[i * p + j] += by * b[k * p + j];
        }
}

// y = the coefficients of x
static void transform(const struct demo_grid *g, struct room *r)
{
    product(r->x, r->across.back, g->rows, g->cols, g->cols, r->half);
    product(r->down.to, r->half, g->rows, g->rows, g->cols, r->y);
}

// x = the numbers of which y are the coefficients
static void transform_back(const struct demo_grid *g, struct room *r)
{
    product(r->y, r->across.to, g->rows, g->cols, g->cols, r->half);
    product(r->down.back, r->half, g->rows, g->rows, g->cols, r->x);
}

// Where chunk c begins in the matrix.
static size_t start_of(const struct demo_grid *g, size_t c)
{
    size_t width = g->across * g->cols;
    return c / g->across * g->rows * width + c % g->across * g->cols;
}

// ---- messages

// Moves the k largest of y to the message. y becomes what is sent.
static void send_largest(const struct sync_settings *s,
                         const struct demo_grid *g, struct room *r, size_t c,
                         void *message)
{
    size_t size = g->rows * g->cols;
    float *values = (float *)message + c * g->k;
    uint32_t *words = (uint32_t *)message + entries(g);
    squeeze_topk.encode(s, 0, r->y, size, r->entries, r->list);
    memcpy(values, r->entries + g->k, g->k * sizeof *values);
    memset(r->y, 0, size * sizeof *r->y);
    for (size_t i = 0; i < g->k; i++) {
        put_bits(words, c * g->k + i, g->bits, r->entries[i]);
        r->y[r->entries[i]] = values[i];
    }
}

void demo_encode(const struct sync_settings *s, const struct demo_grid *g,
                 float *x, void *message, void *scratch)
{
    struct room *r = scratch;
    size_t width = g->across * g->cols;
    make_bases(g, r);
    memset((uint32_t *)message + entries(g), 0,
           index_words(g) * sizeof(uint32_t));
    for (size_t c = 0; c < g->down * g->across; c++) {
        float *at = x + start_of(g, c);
        for (size_t i = 0; i < g->rows; i++)
            memcpy(r->x + i * g->cols, at + i * width, g->cols * sizeof *at);
        transform(g, r);
        send_largest(s, g, r, c, message);
        transform_back(g, r);
        for (size_t i = 0; i < g->rows; i++)
            for (size_t j = 0; j < g->cols; j++)
                at[i * width + j] -= r->x[i * g->cols + j];
    }
}

// y = the mean of chunk c over those messages that have the coefficient
static void take_mean(const struct demo_grid *g, const char *messages,
                      int count, size_t c, struct room *r)
{
    size_t size = g->rows * g->cols;
    memset(r->y, 0, size * sizeof *r->y);
    memset(r->count, 0, size * sizeof *r->count);
    for (int m = 0; m < count; m++) {
        const void *message = messages + (size_t)m * demo_bytes(g);
        const float *values = message;
        for (size_t i = c * g->k; i < (c + 1) * g->k; i++) {
            uint32_t index = get_bits(indices(g, message), i, g->bits);
            r->y[index] += values[i];
            r->count[index]++;
        }
    }
    for (size_t i = 0; i < size; i++)
        r->y[i] /= r->count[i] > 0 ? r->count[i] : 1;
}

void demo_signs(const struct demo_grid *g, const void *messages, int count,
                float *out, void *scratch)
{
    struct room *r = scratch;
    size_t width = g->across * g->cols;
    make_bases(g, r);
    for (size_t c = 0; c < g->down * g->across; c++) {
        float *at = out + start_of(g, c);
        take_mean(g, messages, count, c, r);
        transform_back(g, r);
        for (size_t i = 0; i < g->rows; i++)
            for (size_t j = 0; j < g->cols; j++) {
                float x = r->x[i * g->cols + j];
                at[i * width + j] =
                    isfinite(x) ? (float)((x > 0) - (x < 0)) : NAN;
            }
    }
}

const struct squeeze_ops squeeze_demo = {
    .name = "demo",
    .gives_update = true,
    .scratch = demo_scratch,
};
