// part_ranges.c - where the elements of a part's vector are in the vector of
// the whole model.

#include "model/part.h"

// Joins ranges that are neighbours both in the part and in the whole.
struct ranges {
    size_t from, end;  // the elements that the caller asks for
    size_t off, n, at; // the joined range, which fn() has not got yet
    part_range *fn;
    void *ctx;
};

// Gives the joined range to fn(), if there is one.
static int flush(struct ranges *r)
{
    int rc = r->n ? r->fn(r->ctx, r->off, r->n, r->at) : 0;
    r->n = 0;
    return rc;
}

// Adds elements [off, off + n), as far as the caller asks for them. In the
// whole they begin at `at`.
static int add(struct ranges *r, size_t off, size_t n, size_t at)
{
    size_t from = off > r->from ? off : r->from;
    size_t end = off + n < r->end ? off + n : r->end;
    if (from >= end)
        return 0;
    at += from - off;
    if (r->n && r->off + r->n == from && r->at + r->n == at) {
        r->n += end - from;
        return 0;
    }
    int rc = flush(r);
    r->off = from;
    r->n = end - from;
    r->at = at;
    return rc;
}

// Adds a tensor that begins at `off` in the part and at `at` in the whole.
static int add_tensor(struct ranges *r, const struct part_box *b, size_t off,
                      size_t at)
{
    size_t runs = b->rows * b->pieces;
    size_t first = r->from > off ? (r->from - off) / b->n : 0;
    int rc = 0;
    for (size_t k = first; !rc && k < runs && off + k * b->n < r->end; k++)
        rc = add(r, off + k * b->n, b->n,
                 at + k / b->pieces * b->width + b->at +
                     k % b->pieces * b->apart);
    return rc;
}

static int walk(const struct model_config *c, bool counted, struct ranges *r)
{
    struct model_config whole = part_whole(c);
    int rc = 0;
    for (int i = 0; !rc && i < model_ntensors(c); i++) {
        struct tensor here, there;
        model_tensor(c, i, &here);
        if (here.n == 0 || here.off >= r->end || here.off + here.n <= r->from ||
            (counted && !part_counts(c, i)))
            continue;
        model_tensor(&whole, part_tensor(c, i), &there);
        struct part_box box = part_box(c, i);
        rc = add_tensor(r, &box, here.off, there.off);
    }
    return rc ? rc : flush(r);
}

int part_ranges(const struct model_config *c, size_t off, size_t n,
                part_range *fn, void *ctx)
{
    struct ranges r = {.from = off, .end = off + n, .fn = fn, .ctx = ctx};
    return walk(c, false, &r);
}

int part_counted_ranges(const struct model_config *c, size_t off, size_t n,
                        part_range *fn, void *ctx)
{
    struct ranges r = {.from = off, .end = off + n, .fn = fn, .ctx = ctx};
    return walk(c, true, &r);
}
