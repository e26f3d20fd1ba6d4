// part.c - which layers, heads and words of the whole model a part has.

#include "model/part.h"

#include "base/base.h"

struct part_share part_even(int n, int shares, int k)
{
    int each = n / shares, more = n % shares;
    return (struct part_share){.first = k * each + (k < more ? k : more),
                               .n = each + (k < more)};
}

static int check_cut(const struct model_config *whole, int runs,
                     const int *layers)
{
    int sum = 0;
    if (runs > whole->layers)
        return fail("pipeline: %d layers in %d parts leave a part without "
                    "layers; try: fewer stages or chunks",
                    whole->layers, runs);
    for (int k = 0; layers && k < runs; k++) {
        if (layers[k] < 1)
            return fail("stages=: part %d has %d layers; try: 1 or more", k,
                        layers[k]);
        sum += layers[k];
    }
    if (layers && sum != whole->layers)
        return fail("stages=: the numbers add up to %d layers, the model has "
                    "%d; try: numbers that add up to %d",
                    sum, whole->layers, whole->layers);
    return 0;
}

int part_cut(const struct model_config *whole, int stages, int stage,
             int chunks, const int *layers, struct model_config *out)
{
    int runs = stages * chunks, at = 0;
    CHECK(stage >= 0 && stage < stages && part_is_whole(whole));
    CHECK(chunks >= 1 && chunks <= MODEL_CHUNKS);
    if (check_cut(whole, runs, layers))
        return -1;
    struct model_config c = *whole;
    c.part = (struct model_part){.of = whole->layers, .chunks = chunks};
    c.layers = 0;
    for (int k = 0; k < runs; k++) {
        int n = layers ? layers[k] : part_even(whole->layers, runs, k).n;
        if (k % stages == stage) {
            c.part.first[k / stages] = at;
            c.part.layers[k / stages] = n;
            c.layers += n;
        }
        at += n;
    }
    *out = c;
    return 0;
}

int part_slice(const struct model_config *c, int slices, int slice,
               struct model_config *out)
{
    CHECK(slices >= 1 && slice >= 0 && slice < slices && !c->part.slices);
    if (slices > c->heads || slices > c->vocab)
        return fail("slices: %d heads and %d words in %d slices leave a slice "
                    "without a head or a word; try: tp%d or fewer",
                    c->heads, c->vocab, slices,
                    c->heads < c->vocab ? c->heads : c->vocab);
    *out = *c;
    if (slices > 1) {
        out->part.slices = slices;
        out->part.slice = slice;
    }
    return 0;
}

bool part_is_whole(const struct model_config *c)
{
    return c->part.of == 0 && c->part.slices == 0;
}

struct model_config part_whole(const struct model_config *c)
{
    struct model_config whole = *c;
    if (c->part.of)
        whole.layers = c->part.of;
    whole.part = (struct model_part){.of = 0};
    return whole;
}

int part_chunks(const struct model_config *c)
{
    return c->part.of ? c->part.chunks : 1;
}

void part_chunk(const struct model_config *c, int chunk, int *from, int *to)
{
    *from = 0;
    *to = c->layers;
    if (!c->part.of)
        return;
    for (int k = 0; k < chunk; k++)
        *from += c->part.layers[k];
    *to = *from + c->part.layers[chunk];
}

int part_layer(const struct model_config *c, int layer)
{
    int k = 0, from, to;
    if (!c->part.of)
        return layer;
    CHECK(layer >= 0 && layer < c->layers);
    part_chunk(c, k, &from, &to);
    while (layer >= to)
        part_chunk(c, ++k, &from, &to);
    return c->part.first[k] + layer - from;
}

int part_tensor(const struct model_config *c, int i)
{
    int k = i - 2, layers = MODEL_PER_LAYER * c->layers;
    if (k < 0)
        return i;
    if (k >= layers)
        return 2 + MODEL_PER_LAYER * part_whole(c).layers + k - layers;
    return 2 + MODEL_PER_LAYER * part_layer(c, k / MODEL_PER_LAYER) +
           k % MODEL_PER_LAYER;
}

bool part_embeds(const struct model_config *c)
{
    return !c->part.of || c->part.first[0] == 0;
}

bool part_has_head(const struct model_config *c)
{
    int last = part_chunks(c) - 1;
    return !c->part.of ||
           c->part.first[last] + c->part.layers[last] == c->part.of;
}

static struct part_share share(const struct model_config *c, int n)
{
    return c->part.slices ? part_even(n, c->part.slices, c->part.slice)
                          : (struct part_share){0, n};
}

struct part_share part_heads(const struct model_config *c)
{
    return share(c, c->heads);
}

struct part_share part_inner(const struct model_config *c)
{
    return share(c, 4 * c->channels);
}

struct part_share part_words(const struct model_config *c)
{
    return share(c, c->vocab);
}

struct part_share part_rows(const struct model_config *c, size_t rows)
{
    return share(c, (int)rows);
}
