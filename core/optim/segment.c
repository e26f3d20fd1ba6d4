// segment.c - the passes of an update over a segment of the vector, in host
// memory.

#include "optim/segment.h"

#include "base/base.h"
#include "device/vector.h"

#include <math.h>

enum { PIECE = 1 << 16 }; // elements that a thread updates at a time

size_t segment_blocks(size_t n)
{
    return (n + RULE_BLOCK - 1) / RULE_BLOCK;
}

// The index of the first of the ranges that ends after element `at`.
static int first_behind(const struct norm_parts *parts, size_t at)
{
    int low = 0, high = parts ? parts->count : 0;
    while (low < high) {
        int middle = (low + high) / 2;
        const struct optim_range *r = &parts->elsewhere[middle];
        if (r->off + r->n <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// The sum of squares of those elements [from, to) that count here, or a number
// that is not finite if any element is not. g points to element `from`.
static double counted(const float *g, size_t from, size_t to,
                      const struct norm_parts *parts)
{
    double sum = 0;
    size_t at = from;
    int count = parts ? parts->count : 0;
    for (int k = first_behind(parts, from); k < count && at < to; k++) {
        size_t off = parts->elsewhere[k].off, n = parts->elsewhere[k].n;
        size_t end = off < to ? off : to;
        if (end > at)
            sum += optim_sum_squares(g + (at - from), end - at);
        at = end > at ? end : at;
        end = off + n < to ? off + n : to;
        double other = optim_sum_squares(g + (at - from), end - at);
        sum += isfinite(other) ? 0 : other;
        at = end;
    }
    return at < to ? sum + optim_sum_squares(g + (at - from), to - at) : sum;
}

void segment_squares(const float *grads, size_t off, size_t n,
                     const struct norm_parts *parts, double *sums)
{
    CHECK(off % RULE_BLOCK == 0 || n == 0);
#pragma omp parallel for schedule(static)
    for (size_t at = 0; at < n; at += RULE_BLOCK) {
        size_t from = off + at, to = from + segment_piece(n, at, RULE_BLOCK);
        sums[from / RULE_BLOCK] = counted(grads + at, from, to, parts);
    }
}

double segment_norm(const double *sums, size_t blocks)
{
    double part[RULE_LANES] = {0}, sum = 0;
    for (size_t b = 0; b < blocks; b++)
        part[b % RULE_LANES] += sums[b];
    for (int k = 0; k < RULE_LANES; k++)
        sum += part[k];
    return sum;
}

// Each piece is cast to the copy while it is still in the cache.
void segment_update(const struct optim_config *c, float *params,
                    float *const *slots, const float *grads, size_t off,
                    size_t n, const struct rule_in *in, float scale)
{
#pragma omp parallel for schedule(static)
    for (size_t at = 0; at < n; at += PIECE) {
        size_t from = off + at, len = segment_piece(n, at, PIECE);
        float *own[OPTIM_MAX_SLOTS];
        optim_slots_at(slots, at, own);
        if (in->frozen)
            optim_update_frozen(c, params + at, own, grads + at, from, len,
                                in->lr, scale);
        else
            optim_update(c, params + at, own, grads + at, from, len, in->step,
                         in->lr, scale);
        if (in->copy)
            vector_cast((char *)in->copy->at +
                            from * dtype_bytes(in->copy->format),
                        in->copy->format, params + at, DTYPE_F32, len);
    }
}
