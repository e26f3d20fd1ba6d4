// data.c - makes batches from a path: read, tokenise, split, order, load ahead.
//
//     tokens   [ train .......................... | val ... ]
//     windows  [ T ][ T ][ T ][ T ] ..              [ T ][ T ]
//     x        tokens w*T     .. w*T + T-1
//     y        tokens w*T + 1 .. w*T + T       x shifted by one token

#include "data/data.h"

#include "base/base.h"
#include "base/file.h"
#include "data/headers.h"
#include "data/loader.h"
#include "data/order.h"
#include "data/symbols.h"
#include "data/tokens.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SOURCE = 1280, MOST_SYMBOLS = 1 << 26 };

static const char default_root[] = "/usr/include";

struct data {
    struct data_config config; // its paths are NULL after data_open()
    struct symbols symbols;
    struct tokens train, val;
    struct file files[2]; // shards of tokens, or a text
    char *text;           // the text of the headers, or NULL
    uint16_t *encoded;    // the tokens of a text, or NULL
    uint64_t hash;
    uint64_t windows; // of the training tokens
    size_t step_windows, steps_per_epoch;
    struct loader *loader;
    char source[SOURCE];
};

// ---- reading

// With vocab=bytes the bytes of the text are the tokens. Other tokens are
// encoded into a mapping with space for n tokens. Only the written part takes
// memory.
static int read_text(struct data *d, const char *text, size_t n)
{
    if (symbols_open(&d->symbols, d->config.vocab, text, n))
        return -1;
    if (d->symbols.kind == SYMBOLS_BYTES) {
        d->train = (struct tokens){text, n, 1};
        return 0;
    }
    d->encoded = mem_alloc(n, sizeof *d->encoded);
    long count =
        d->encoded ? symbols_encode(&d->symbols, text, n, d->encoded) : -1;
    if (count < 0)
        return -1;
    d->train = (struct tokens){d->encoded, (size_t)count, 2};
    return 0;
}

// What training on the text of a file would also learn, and nobody wants.
static void warn_of(const struct data *d, const char *text, size_t n)
{
    if (memmem(text, n, "\r\n", 2))
        log_line("warning: %s: lines end with CR and LF, and both are "
                 "learned; try: tr -d '\\r'",
                 d->source);
    size_t lost = symbols_lost(&d->symbols);
    if (lost)
        log_line("warning: %s: not UTF-8: %zu of its symbols are lone bytes; "
                 "try: iconv -t UTF-8, or vocab=bytes",
                 d->source, lost);
}

static int read_headers(struct data *d)
{
    struct headers h;
    char size[32];
    if (headers_read(&h, default_root, d->config.max_bytes))
        return -1;
    d->text = h.text;
    return text_into(d->source, SOURCE, "%s: %s of %zu C headers", default_root,
                     mem_text(size, h.bytes), h.files) ||
                   read_text(d, h.text, h.bytes)
               ? -1
               : 0;
}

static int read_part(struct file *f, struct tokens *t, const char *path)
{
    return file_map(f, "data", path) || shard_read(f, path, t) ? -1 : 0;
}

static int read_folder(struct data *d)
{
    const struct data_config *c = &d->config;
    char train[SOURCE], val[SOURCE];
    if (text_into(train, SOURCE, "%s/train.bin", c->path) ||
        text_into(val, SOURCE, "%s/val.bin", c->path))
        return -1;
    if (read_part(&d->files[0], &d->train, train) ||
        (c->val_fraction > 0 && read_part(&d->files[1], &d->val, val)))
        return fail("%s; a folder needs train.bin and val.bin", fail_message());
    return 0;
}

static int read_file(struct data *d)
{
    const struct data_config *c = &d->config;
    struct file *f = &d->files[0];
    if (file_map(f, "data", c->path))
        return -1;
    if (shard_is(f, c->path))
        return shard_read(f, c->path, &d->train);
    const char *text = (const char *)f->at;
    if (read_text(d, text, f->bytes))
        return -1;
    if (c->rank == 0)
        warn_of(d, text, f->bytes);
    return 0;
}

static int read_source(struct data *d)
{
    const struct data_config *c = &d->config;
    if (!c->path[0])
        return read_headers(d);
    if (text_into(d->source, SOURCE, "%s", c->path))
        return -1;
    return file_is_folder(c->path) ? read_folder(d) : read_file(d);
}

// ---- cutting

static void split(struct data *d)
{
    if (d->val.n || d->config.val_fraction <= 0)
        return;
    size_t n = d->train.n;
    size_t train = (size_t)((double)n * (1 - d->config.val_fraction));
    train = train < n ? train : n;
    d->val = tokens_part(&d->train, train, n - train);
    d->train = tokens_part(&d->train, 0, train);
}

// a * b. SIZE_MAX - 1 if the product is too large: the caller may add 1.
static size_t times(size_t a, size_t b)
{
    size_t product;
    return __builtin_mul_overflow(a, b, &product) ? SIZE_MAX - 1 : product;
}

// How many windows all ranks together read for one micro-batch.
static size_t batch_windows(const struct data_config *c)
{
    return times((size_t)c->world, (size_t)c->batch);
}

static int check_length(const struct data *d, const char *what, size_t have,
                        size_t windows, const char *cure)
{
    size_t need = times(windows, (size_t)d->config.tokens) + 1;
    if (have >= need)
        return 0;
    return fail("%s: %zu %s tokens, too short: one %s needs %zu (%zu windows "
                "of %d, plus 1); try: more text, a smaller batch%s",
                d->source, have, what, *what == 't' ? "step" : "batch", need,
                windows, d->config.tokens, cure);
}

static int cut(struct data *d)
{
    const struct data_config *c = &d->config;
    d->step_windows = times(batch_windows(c), (size_t)c->accum);
    if (check_length(d, "training", d->train.n, d->step_windows,
                     " or a smaller context"))
        return -1;
    if (c->val_fraction > 0 && !c->val_unused &&
        check_length(d, "validation", d->val.n, batch_windows(c),
                     " or val_fraction=0"))
        return -1;
    d->windows = (d->train.n - 1) / (size_t)c->tokens;
    d->steps_per_epoch = (size_t)d->windows / d->step_windows;
    return 0;
}

// Reads the symbols that `lockstep prepare` wrote. 0, or -1 after fail(); 1 if
// there are none.
static int prepared_symbols(struct data *d, const char *folder)
{
    char path[SOURCE];
    if (text_into(path, SOURCE, "%s/symbols.txt", folder))
        return -1;
    if (access(path, F_OK))
        return 1;
    char *text = file_read(path, MOST_SYMBOLS);
    int rc = text ? symbols_load(&d->symbols, text) : -1;
    mem_free(text);
    return rc;
}

// Shards need no symbols. With a file in vocab=, or beside a symbols.txt, their
// tokens can be shown as text.
static int shard_symbols(struct data *d, uint32_t largest)
{
    const struct data_config *c = &d->config;
    bool file = symbols_have_file(c->vocab);
    int rc = file ? symbols_vocab(&d->symbols, c->vocab)
                  : prepared_symbols(d, c->path);
    if (rc == 1)
        return symbols_none(&d->symbols, (size_t)largest + 1);
    if (rc == 0 && largest >= d->symbols.n)
        return fail("data=%s: has token %u, but %s has only %zu tokens",
                    d->source, largest, file ? c->vocab : "symbols.txt",
                    d->symbols.n);
    return rc;
}

// The only pass over all tokens: computes their hash, and finds the largest
// token to check it against the symbols.
static int scan(struct data *d)
{
    uint64_t lengths[] = {d->train.n, d->val.n};
    uint32_t largest = 0;
    d->hash = hash_bytes(lengths, sizeof lengths);
    tokens_scan(&d->train, &d->hash, &largest);
    tokens_scan(&d->val, &d->hash, &largest);
    if (d->symbols.n == 0 && shard_symbols(d, largest))
        return -1;
    char *symbols = symbols_save(&d->symbols);
    if (!symbols)
        return -1;
    d->hash = hash_more(d->hash, symbols, strlen(symbols));
    free(symbols);
    return 0;
}

// ---- batches

static void copy_window(const struct tokens *t, size_t at, size_t tokens,
                        int32_t *x, int32_t *y)
{
    tokens_copy(t, at, tokens, x);
    tokens_copy(t, at + 1, tokens, y);
}

// The first token of the i-th window of a step.
static uint64_t window_at(const struct data *d, uint64_t step, uint64_t i)
{
    const struct data_config *c = &d->config;
    uint64_t T = (uint64_t)c->tokens, n = d->step_windows;
    if (c->order == DATA_RANDOM)
        return order_random(c->seed, d->train.n - T, step * n + i);
    uint64_t epoch = step / d->steps_per_epoch;
    uint64_t of_epoch = step % d->steps_per_epoch * n + i;
    return T * order_at(c->seed, epoch, d->windows, of_epoch);
}

// Micro-batch k of this rank, counted over all steps and epochs.
static void fill(const void *ctx, uint64_t k, int32_t *x, int32_t *y)
{
    const struct data *d = ctx;
    const struct data_config *c = &d->config;
    size_t T = (size_t)c->tokens, B = (size_t)c->batch;
    uint64_t step = k / (uint64_t)c->accum, micro = k % (uint64_t)c->accum;
    uint64_t rank = c->same_draw ? 0 : (uint64_t)c->rank;
    uint64_t first = micro * batch_windows(c) + rank * B;
    for (size_t b = 0; b < B; b++) {
        uint64_t at = window_at(d, step, first + b);
        copy_window(&d->train, (size_t)at, T, x + b * T, y + b * T);
    }
}

int data_seek(struct data *d, uint64_t step)
{
    uint64_t accum = (uint64_t)d->config.accum;
    if (step > UINT64_MAX / accum / 2)
        return fail("data: step %llu is too large to count micro-batches",
                    (unsigned long long)step);
    loader_close(&d->loader);
    struct loader_job job = {
        .fill = fill,
        .ctx = d,
        .n = (size_t)d->config.batch * (size_t)d->config.tokens,
        .first = step * accum,
    };
    return loader_open(&d->loader, &job);
}

int data_next(struct data *d, int32_t *x, int32_t *y)
{
    if (!d->loader)
        return fail("data: symbols alone have no batches");
    return loader_take(d->loader, x, y);
}

int data_val(const struct data *d, size_t i, int32_t *x, int32_t *y)
{
    const struct data_config *c = &d->config;
    size_t T = (size_t)c->tokens, B = (size_t)c->batch;
    size_t G = batch_windows(c);
    if (d->val.n == 0 || i >= (d->val.n - 1) / T / G)
        return 0;
    for (size_t b = 0; b < B; b++)
        copy_window(&d->val, (i * G + (size_t)c->rank * B + b) * T, T,
                    x + b * T, y + b * T);
    return 1;
}

// ---- open, close

int data_open(struct data **out, const struct data_config *c)
{
    CHECK(c->batch > 0 && c->tokens > 0 && c->accum > 0);
    CHECK(c->rank >= 0 && c->rank < c->world);
    struct data *d = mem_alloc(1, sizeof *d);
    if (!d)
        return -1;
    d->config = *c;
    int rc = read_source(d);
    if (!rc) {
        split(d);
        rc = cut(d) || scan(d) || data_seek(d, 0) ? -1 : 0;
    }
    d->config.path = d->config.vocab = NULL; // they are the caller's
    if (rc)
        data_close(&d);
    else
        *out = d;
    return rc;
}

void data_close(struct data **out)
{
    struct data *d = *out;
    if (!d)
        return;
    loader_close(&d->loader);
    symbols_close(&d->symbols);
    file_unmap(&d->files[0]);
    file_unmap(&d->files[1]);
    mem_free(d->text);
    mem_free(d->encoded);
    mem_free(d);
    *out = NULL;
}

void data_info(const struct data *d, struct data_info *out)
{
    *out = (struct data_info){
        .vocab_size = d->symbols.n,
        .train_tokens = d->train.n,
        .val_tokens = d->val.n,
        .steps_per_epoch = d->steps_per_epoch,
        .hash = d->hash,
        .source = d->source,
    };
}

// ---- tokens as text

long data_encode(const struct data *d, const char *text, size_t n,
                 int32_t *tokens, size_t max)
{
    uint16_t *all = mem_alloc(n, sizeof *all);
    if (!all)
        return -1;
    long count = symbols_encode(&d->symbols, text, n, all);
    if (count > 0 && (size_t)count > max)
        count =
            fail("text: %ld tokens, more than the %zu that fit", count, max);
    for (long i = 0; i < count; i++)
        tokens[i] = all[i];
    mem_free(all);
    return count;
}

size_t data_decode(const struct data *d, int32_t token, char out[256])
{
    return symbols_decode(&d->symbols, token, out);
}

char *data_symbols_save(const struct data *d)
{
    return symbols_save(&d->symbols);
}

int data_symbols_load(struct data **out, const char *saved)
{
    struct data *d = mem_alloc(1, sizeof *d);
    if (!d)
        return -1;
    if (symbols_load(&d->symbols, saved)) {
        mem_free(d);
        return -1;
    }
    strcpy(d->source, "a checkpoint's symbols");
    *out = d;
    return 0;
}
