// layout.c - where every tensor of GPT-2 is in the flat vector of parameters.
//
//     wte (V,C) | wpe (T,C) | layer 0 | .. | layer L-1 | ln_f (2C)
//     layer: ln_1 2C, c_attn 3C(C+1), c_proj C(C+1), ln_2 2C,
//            c_fc 4C(C+1), c_proj C(4C+1)            = 12 C^2 + 13 C
//
// A stage has some of the layers, and those of wte, wpe and ln_f that it needs.
// A slice has some rows or columns of the matrices (part.h).
//
// Sizes and init: Radford et al. 2019 and OpenAI's release of GPT-2.

#include "model/model.h"

#include "base/base.h"
#include "base/rng.h"
#include "model/part.h"

#include <math.h>
#include <string.h>

static const struct preset {
    const char *name;
    int layers, heads, channels, context;
    int vocab; // 0: the data decides it
} presets[] = {
    {"nano", 4, 4, 128, 64, 0},
    {"micro", 4, 4, 256, 128, 0},
    {"baby", 6, 6, 384, 256, 0},
    {"gpt2", 12, 12, 768, 1024, 50257},
    {"gpt2-medium", 24, 16, 1024, 1024, 50257},
    {"gpt2-large", 36, 20, 1280, 1024, 50257},
    {"gpt2-xl", 48, 25, 1600, 1024, 50257},
    {"slides", 12, 12, 768, 512, 26679},
};

enum { NPRESETS = sizeof presets / sizeof presets[0] };

// Within these limits an int holds the index of any activation's row, and 64
// bits hold the number of parameters.
enum {
    MAX_LAYERS = 1000,
    MAX_CHANNELS = 1 << 20,
    MAX_CONTEXT = 1 << 20,
    MAX_VOCAB = 1 << 24
};

static const uint64_t MAX_BYTES = (uint64_t)1 << 46; // half an address space

const char *model_preset_name(int i)
{
    return i < NPRESETS ? presets[i].name : NULL;
}

int model_preset(const char *name, struct model_config *out)
{
    char all[256] = "";
    for (int i = 0; i < NPRESETS; i++) {
        const struct preset *p = &presets[i];
        if (strcmp(p->name, name) == 0) {
            *out = (struct model_config){.layers = p->layers,
                                         .heads = p->heads,
                                         .channels = p->channels,
                                         .context = p->context,
                                         .vocab = p->vocab};
            return 0;
        }
        size_t at = strlen(all);
        snprintf(all + at, sizeof all - at, "%s%s", i ? ", " : "", p->name);
    }
    return fail("model: no preset \"%s\"; try: %s", name, all);
}

static int check_range(const char *name, int value, int max)
{
    if (value < 1 || value > max)
        return fail("model: %s is %d, must be from 1 to %d", name, value, max);
    return 0;
}

int model_check(const struct model_config *c)
{
    if (check_range("layers", c->layers, MAX_LAYERS) ||
        check_range("channels", c->channels, MAX_CHANNELS) ||
        check_range("heads", c->heads, c->channels) ||
        check_range("context", c->context, MAX_CONTEXT) ||
        check_range("vocab_size", c->vocab, MAX_VOCAB))
        return -1;
    if (c->channels % c->heads != 0)
        return fail("model: heads %d does not divide channels %d; try: "
                    "channels=%d",
                    c->heads, c->channels,
                    (c->channels / c->heads + 1) * c->heads);
    if (!(c->dropout >= 0 && c->dropout < 1))
        return fail("model: dropout %g is outside [0, 1)", c->dropout);
    size_t n = model_nparams(c);
    if (n > MAX_BYTES / sizeof(float))
        return fail("model: %zu parameters are more than can be addressed; "
                    "try: fewer layers or channels",
                    n);
    return 0;
}

int model_ntensors(const struct model_config *c)
{
    return 2 + MODEL_PER_LAYER * c->layers + 2;
}

// Which part of a tensor a slice has.
enum slicing { WHOLE, ROWS, COLUMNS };

// A dimension of INNER units of C is the one between the MLP's products. Slices
// divide it as one piece; they divide each C of other dimensions by heads.
enum { INNER = 4 };

// The properties of a tensor that do not depend on the config. The config gives
// its size and place.
struct shape {
    const char *name;
    int in, out; // in units of C; in = 0: a vector of `out` units
    enum slicing slicing;
    bool residual;
    float fill;
};

static const struct shape in_layer[MODEL_PER_LAYER] = {
    {"ln_1.weight", 0, 1, WHOLE, false, 1},
    {"ln_1.bias", 0, 1, WHOLE, false, 0},
    {"attn.c_attn.weight", 1, 3, COLUMNS, false, 0},
    {"attn.c_attn.bias", 0, 3, COLUMNS, false, 0},
    {"attn.c_proj.weight", 1, 1, ROWS, true, 0},
    {"attn.c_proj.bias", 0, 1, WHOLE, false, 0},
    {"ln_2.weight", 0, 1, WHOLE, false, 1},
    {"ln_2.bias", 0, 1, WHOLE, false, 0},
    {"mlp.c_fc.weight", 1, 4, COLUMNS, false, 0},
    {"mlp.c_fc.bias", 0, 4, COLUMNS, false, 0},
    {"mlp.c_proj.weight", 4, 1, ROWS, true, 0},
    {"mlp.c_proj.bias", 0, 1, WHOLE, false, 0},
};

// This slice's share of a dimension of `units` times C. For the MLP's dimension
// it is a range of the whole dimension; for any other, the range of the slice's
// heads in each C.
static struct part_share sliced(const struct model_config *c, int units)
{
    struct part_share heads = part_heads(c);
    int D = c->channels / c->heads;
    if (units == INNER)
        return part_inner(c);
    return (struct part_share){heads.first * D, heads.n * D};
}

// How many pieces a divided dimension has: c_attn's has three, q, k and v.
static size_t pieces(int units)
{
    return units == INNER ? 1 : (size_t)units;
}

// The length of a dimension: if `here`, of this slice's share, else of the
// whole.
static size_t extent(const struct model_config *c, int units, bool here)
{
    return here ? (size_t)sliced(c, units).n * pieces(units)
                : (size_t)c->channels * (size_t)units;
}

static size_t shape_rows(const struct model_config *c, const struct shape *s)
{
    return s->in ? extent(c, s->in, s->slicing == ROWS) : 1;
}

static size_t shape_columns(const struct model_config *c, const struct shape *s)
{
    return extent(c, s->out, s->slicing == COLUMNS);
}

static size_t shape_n(const struct model_config *c, const struct shape *s)
{
    return shape_rows(c, s) * shape_columns(c, s);
}

static size_t layer_n(const struct model_config *c)
{
    size_t n = 0;
    for (int k = 0; k < MODEL_PER_LAYER; k++)
        n += shape_n(c, &in_layer[k]);
    return n;
}

// Elements of wte and wpe that this part has.
static size_t wte_n(const struct model_config *c)
{
    bool here = part_embeds(c) || part_has_head(c);
    return here ? (size_t)part_words(c).n * (size_t)c->channels : 0;
}

static size_t wpe_n(const struct model_config *c)
{
    return part_embeds(c) ? (size_t)c->context * (size_t)c->channels : 0;
}

static size_t tables_n(const struct model_config *c)
{
    return wte_n(c) + wpe_n(c);
}

static size_t ln_f_n(const struct model_config *c)
{
    return part_has_head(c) ? 2 * (size_t)c->channels : 0;
}

// Where ln_f begins: after the tables and all layers.
static size_t ln_f_off(const struct model_config *c)
{
    return tables_n(c) + (size_t)c->layers * layer_n(c);
}

size_t model_nparams(const struct model_config *c)
{
    return ln_f_off(c) + ln_f_n(c);
}

// A vector of `columns` numbers if rows is 0.
static void set_shape(struct tensor *t, size_t rows, size_t columns)
{
    t->ndim = rows ? 2 : 1;
    t->shape[0] = rows ? rows : columns;
    t->shape[1] = rows ? columns : 0;
    t->n = rows ? rows * columns : columns;
    t->decay = rows > 0;
}

static void set_name(struct tensor *t, const char *name)
{
    CHECK(text_into(t->name, sizeof t->name, "%s", name) == 0);
}

static void in_layer_tensor(const struct model_config *c, int layer, int k,
                            struct tensor *out)
{
    const struct shape *s = &in_layer[k];
    int status = text_into(out->name, sizeof out->name, "h.%d.%s",
                           part_layer(c, layer), s->name);
    CHECK(status == 0);
    out->off = tables_n(c) + (size_t)layer * layer_n(c);
    for (int before = 0; before < k; before++)
        out->off += shape_n(c, &in_layer[before]);
    set_shape(out, s->in ? shape_rows(c, s) : 0, shape_columns(c, s));
    out->residual = s->residual;
    out->fill = s->fill;
}

void model_tensor(const struct model_config *c, int i, struct tensor *out)
{
    int n = model_ntensors(c);
    CHECK(i >= 0 && i < n);
    size_t C = (size_t)c->channels, V = (size_t)part_words(c).n;
    *out = (struct tensor){.off = 0};
    if (i == 0) {
        set_name(out, "wte.weight");
        set_shape(out, V, C);
        out->n = wte_n(c);
    } else if (i == 1) {
        set_name(out, "wpe.weight");
        set_shape(out, (size_t)c->context, C);
        out->n = wpe_n(c);
        out->off = wte_n(c);
    } else if (i < n - 2) {
        int k = i - 2;
        in_layer_tensor(c, k / MODEL_PER_LAYER, k % MODEL_PER_LAYER, out);
    } else {
        bool bias = i == n - 1;
        set_name(out, bias ? "ln_f.bias" : "ln_f.weight");
        set_shape(out, 0, C);
        out->n = ln_f_n(c) / 2;
        out->off = ln_f_off(c) + (bias ? out->n : 0);
        out->fill = bias ? 0 : 1;
    }
}

int model_nblocks(const struct model_config *c)
{
    return c->layers + 2;
}

void model_block(const struct model_config *c, int b, size_t *off, size_t *n)
{
    CHECK(b >= 0 && b < model_nblocks(c));
    size_t layer = layer_n(c), tables = tables_n(c);
    *off = b == 0 ? 0 : tables + (size_t)(b - 1) * layer;
    *n = b == 0 ? tables : b <= c->layers ? layer : ln_f_n(c);
}

size_t model_work(const struct model_config *c)
{
    size_t layers = c->layers < 2 ? (size_t)c->layers : 2;
    size_t others = (size_t)c->layers - layers;
    return model_nparams(c) - others * layer_n(c);
}

// Where the elements of a part's tensor are in the whole tensor. Each of `rows`
// rows has `pieces` pieces of n elements. Element k of piece p of row r is
// element r * width + at + p * apart + k of the whole tensor.
struct part_box {
    size_t rows, width, pieces, apart, at;
    size_t n; // elements of a piece
};

// A tensor of n elements in one piece.
static struct part_box one_piece(size_t n, size_t at)
{
    return (struct part_box){1, n, 1, n, at, n};
}

static struct part_box box_of(const struct model_config *c, int i)
{
    struct tensor t;
    size_t C = (size_t)c->channels;
    int k = i - 2;
    model_tensor(c, i, &t);
    if (i == 0)
        return one_piece(t.n, (size_t)part_words(c).first * C);
    if (k < 0 || k >= MODEL_PER_LAYER * c->layers)
        return one_piece(t.n, 0);
    const struct shape *s = &in_layer[k % MODEL_PER_LAYER];
    if (s->slicing == WHOLE || !c->part.slices)
        return one_piece(t.n, 0);
    int units = s->slicing == ROWS ? s->in : s->out;
    struct part_share own = sliced(c, units);
    if (s->slicing == ROWS)
        return one_piece(t.n, (size_t)own.first * C);
    return (struct part_box){.rows = shape_rows(c, s),
                             .width = (size_t)units * C,
                             .pieces = pieces(units),
                             .apart = C,
                             .at = (size_t)own.first,
                             .n = (size_t)own.n};
}

bool part_divides(const struct model_config *c, int i)
{
    int k = i - 2, layers = MODEL_PER_LAYER * c->layers;
    if (!c->part.slices)
        return false;
    return i == 0 || (k >= 0 && k < layers &&
                      in_layer[k % MODEL_PER_LAYER].slicing != WHOLE);
}

bool part_counts(const struct model_config *c, int i)
{
    return i == 0 ? part_embeds(c) : c->part.slice == 0 || part_divides(c, i);
}

// The index in the whole tensor of the part's element k.
static size_t in_whole(const struct part_box *b, size_t k)
{
    size_t row = k / (b->pieces * b->n), at = k % (b->pieces * b->n);
    return row * b->width + b->at + at / b->n * b->apart + at % b->n;
}

void model_init_range(const struct model_config *c, uint64_t seed, size_t off,
                      size_t n, float *out)
{
    int L = part_whole(c).layers;
    for (int i = 0; i < model_ntensors(c); i++) {
        struct tensor t;
        model_tensor(c, i, &t);
        size_t from = off > t.off ? off : t.off, to = t.off + t.n;
        to = to < off + n ? to : off + n;
        uint64_t key = rng_key(seed, (uint64_t)part_tensor(c, i));
        double sigma = t.residual ? 0.02 / sqrt(2.0 * L) : 0.02;
        struct part_box box = box_of(c, i);
        bool drawn = t.ndim == 2;
#pragma omp parallel for schedule(static)
        for (size_t k = from; k < to; k++)
            out[k - off] =
                drawn ? (float)(sigma *
                                rng_normal(key, in_whole(&box, k - t.off)))
                      : t.fill;
    }
}

void model_init(const struct model_config *c, uint64_t seed, float *params)
{
    model_init_range(c, seed, 0, model_nparams(c), params);
}

// ---- ranges of the whole vector

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

// Adds a tensor that begins with element `off` of the part and `at` of the
// whole.
static int add_tensor(struct ranges *r, const struct part_box *b, size_t off,
                      size_t at)
{
    size_t runs = b->rows * b->pieces;
    size_t first = r->from > off ? (r->from - off) / b->n : 0;
    int rc = 0;
    for (size_t k = first; !rc && k < runs && off + k * b->n < r->end; k++)
        rc = add(r, off + k * b->n, b->n, at + in_whole(b, k * b->n));
    return rc;
}

static int walk(const struct model_config *c, bool counted, size_t off,
                size_t n, part_range *fn, void *ctx)
{
    struct ranges r = {.from = off, .end = off + n, .fn = fn, .ctx = ctx};
    struct model_config whole = part_whole(c);
    int rc = 0;
    for (int i = 0; !rc && i < model_ntensors(c); i++) {
        struct tensor here, there;
        model_tensor(c, i, &here);
        if (here.n == 0 || here.off >= r.end || here.off + here.n <= r.from ||
            (counted && !part_counts(c, i)))
            continue;
        model_tensor(&whole, part_tensor(c, i), &there);
        struct part_box box = box_of(c, i);
        rc = add_tensor(&r, &box, here.off, there.off);
    }
    return rc ? rc : flush(&r);
}

int part_ranges(const struct model_config *c, size_t off, size_t n,
                part_range *fn, void *ctx)
{
    return walk(c, false, off, n, fn, ctx);
}

int part_counted_ranges(const struct model_config *c, size_t off, size_t n,
                        part_range *fn, void *ctx)
{
    return walk(c, true, off, n, fn, ctx);
}
