// symbols.c - converts between text and tokens of any kind.
//
// The saved form: the first line has the kind and the number of tokens. The
// code points follow, one a line, or a whole vocab.bpe or vocab.txt.

#include "data/symbols.h"

#include "base/base.h"
#include "data/token_file.h"
#include "data/utf8.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 65536 }; // tokens are 16 bits

static const char *const kind_names[] = {"none", "bytes", "chars", "bpe",
                                         "pieces"};

int symbols_none(struct symbols *s, size_t n)
{
    *s = (struct symbols){.kind = SYMBOLS_NONE, .n = n};
    return 0;
}

static int symbols_bytes(struct symbols *s)
{
    *s = (struct symbols){.kind = SYMBOLS_BYTES, .n = 256};
    return 0;
}

static int keep_codes(struct symbols *s, const uint8_t *seen)
{
    size_t n = 0;
    for (uint32_t c = 0; c < UTF8_END; c++)
        n += seen[c];
    if (n > MOST)
        return fail("data: %zu different characters, more than the %d that "
                    "tokens of 16 bits can name; try: vocab=bytes",
                    n, (int)MOST);
    uint32_t *code = mem_alloc(n, sizeof *code);
    if (!code)
        return -1;
    *s = (struct symbols){.kind = SYMBOLS_CHARS, .code = code};
    for (uint32_t c = 0; c < UTF8_END; c++)
        if (seen[c])
            code[s->n++] = c;
    return 0;
}

static int symbols_chars(struct symbols *s, const char *text, size_t n)
{
    uint8_t *seen = mem_alloc(UTF8_END, 1);
    if (!seen)
        return -1;
    const unsigned char *at = (const unsigned char *)text, *end = at + n;
    for (uint32_t c; at < end; seen[c] = 1)
        at += utf8_next(at, (size_t)(end - at), &c);
    int rc = keep_codes(s, seen);
    mem_free(seen);
    return rc;
}

// Symbols of a table of n bytes. Errors begin with `name`.
static int read_table(struct symbols *s, enum symbols_kind kind,
                      const char *name, const char *text, size_t n)
{
    *s = (struct symbols){.kind = kind};
    if (kind == SYMBOLS_BPE ? bpe_open(&s->bpe, name, text, n)
                            : wordpiece_open(&s->pieces, name, text, n))
        return -1;
    s->n = kind == SYMBOLS_BPE ? bpe_size(s->bpe) : wordpiece_size(s->pieces);
    return 0;
}

int symbols_vocab(struct symbols *s, const char *path)
{
    struct file f;
    if (file_map(&f, "vocab", path))
        return -1;
    const char *text = (const char *)f.at;
    int rc =
        read_table(s,
                   wordpiece_is(text, f.bytes) ? SYMBOLS_PIECES : SYMBOLS_BPE,
                   path, text, f.bytes);
    file_unmap(&f);
    return rc;
}

bool symbols_have_file(const char *vocab)
{
    return *vocab && strcmp(vocab, "bytes") && strcmp(vocab, "chars");
}

int symbols_open(struct symbols *s, const char *vocab, const char *text,
                 size_t n)
{
    if (symbols_have_file(vocab))
        return symbols_vocab(s, vocab);
    return strcmp(vocab, "chars") ? symbols_bytes(s)
                                  : symbols_chars(s, text, n);
}

size_t symbols_lost(const struct symbols *s)
{
    size_t n = 0;
    for (size_t i = 0; s->code && i < s->n; i++)
        n += s->code[i] > UTF8_LOST && s->code[i] < UTF8_LOST + 0x100;
    return n;
}

void symbols_close(struct symbols *s)
{
    mem_free(s->code);
    bpe_close(&s->bpe);
    wordpiece_close(&s->pieces);
    *s = (struct symbols){0};
}

// ---- text

static int by_code(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static long encode_chars(const struct symbols *s, const char *text, size_t n,
                         uint16_t *out)
{
    const unsigned char *at = (const unsigned char *)text, *end = at + n;
    long count = 0;
    while (at < end) {
        uint32_t c;
        at += utf8_next(at, (size_t)(end - at), &c);
        const uint32_t *found =
            bsearch(&c, s->code, s->n, sizeof *s->code, by_code);
        if (!found && c >= UTF8_LOST && c <= UTF8_LOST + 0xff)
            return fail("text: byte 0x%02X is not UTF-8, and not in the data",
                        c - UTF8_LOST);
        if (!found)
            return fail("text: U+%04X is not among the %zu characters of the "
                        "data",
                        c, s->n);
        out[count++] = (uint16_t)(found - s->code);
    }
    return count;
}

long symbols_encode(const struct symbols *s, const char *text, size_t n,
                    uint16_t *out)
{
    switch (s->kind) {
    case SYMBOLS_BYTES:
        for (size_t i = 0; i < n; i++)
            out[i] = (unsigned char)text[i];
        return (long)n;
    case SYMBOLS_CHARS:
        return encode_chars(s, text, n, out);
    case SYMBOLS_BPE:
        return bpe_encode(s->bpe, text, n, out);
    case SYMBOLS_PIECES:
        return wordpiece_encode(s->pieces, text, n, out);
    case SYMBOLS_NONE:
        break;
    }
    return fail("text: training read tokens, and their meaning is unknown; "
                "try: vocab=vocab.bpe in training");
}

size_t symbols_decode(const struct symbols *s, int32_t token, char out[256])
{
    if (token < 0 || (size_t)token >= s->n)
        return 0;
    size_t n;
    const char *bytes;
    switch (s->kind) {
    case SYMBOLS_BYTES:
        out[0] = (char)(unsigned char)token;
        return 1;
    case SYMBOLS_CHARS:
        return utf8_put(s->code[token], out);
    case SYMBOLS_BPE:
        bytes = bpe_token(s->bpe, (size_t)token, &n);
        memcpy(out, bytes, n);
        return n;
    case SYMBOLS_PIECES:
        return wordpiece_decode(s->pieces, (size_t)token, out);
    case SYMBOLS_NONE:
        break;
    }
    return (size_t)snprintf(out, 256, "<%d>", token);
}

// ---- the saved form

char *symbols_save(const struct symbols *s)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    if (!f) {
        fail("memory: none left to save the symbols");
        return NULL;
    }
    fprintf(f, "symbols %s %zu\n", kind_names[s->kind], s->n);
    if (s->kind == SYMBOLS_CHARS)
        for (size_t i = 0; i < s->n; i++)
            fprintf(f, "%04X\n", s->code[i]);
    if (s->kind == SYMBOLS_BPE)
        bpe_write(s->bpe, f);
    if (s->kind == SYMBOLS_PIECES)
        wordpiece_write(s->pieces, f);
    bool bad = ferror(f);
    if (fclose(f) || bad) {
        free(text);
        fail("memory: none left to save the symbols");
        return NULL;
    }
    return text;
}

static int load_chars(struct symbols *s, const char *at, size_t n)
{
    uint32_t *code = mem_alloc(n, sizeof *code);
    if (!code)
        return -1;
    for (size_t i = 0; i < n; i++) {
        char *end;
        unsigned long c = strtoul(at, &end, 16);
        if (end == at || *end != '\n' || c >= UTF8_END ||
            (i > 0 && c <= code[i - 1])) {
            mem_free(code);
            return fail("symbols: line %zu is not a code point above the one "
                        "before it",
                        i + 2);
        }
        code[i] = (uint32_t)c;
        at = end + 1;
    }
    *s = (struct symbols){.kind = SYMBOLS_CHARS, .n = n, .code = code};
    return 0;
}

// A table that has to have n tokens.
static int load_table(struct symbols *s, const char *at, size_t n,
                      enum symbols_kind kind)
{
    int rc = read_table(s, kind, "the checkpoint's symbols", at, strlen(at));
    if (rc || s->n == n)
        return rc;
    rc = fail("symbols: the first line says %zu tokens, the table has %zu", n,
              s->n);
    symbols_close(s);
    return rc;
}

int symbols_load(struct symbols *s, const char *saved)
{
    char kind[8];
    unsigned n;
    int at = 0;
    if (sscanf(saved, "symbols %7s %5u%n", kind, &n, &at) != 2 ||
        saved[at] != '\n' || n == 0 || n > MOST)
        return fail("symbols: want \"symbols KIND COUNT\" on the first line, "
                    "not \"%.40s\"",
                    saved);
    const char *rest = saved + at + 1;
    if (strcmp(kind, kind_names[SYMBOLS_NONE]) == 0)
        return symbols_none(s, n);
    if (strcmp(kind, kind_names[SYMBOLS_BYTES]) == 0 && n == 256)
        return symbols_bytes(s);
    if (strcmp(kind, kind_names[SYMBOLS_CHARS]) == 0)
        return load_chars(s, rest, n);
    if (strcmp(kind, kind_names[SYMBOLS_BPE]) == 0)
        return load_table(s, rest, n, SYMBOLS_BPE);
    if (strcmp(kind, kind_names[SYMBOLS_PIECES]) == 0)
        return load_table(s, rest, n, SYMBOLS_PIECES);
    return fail("symbols: %u of kind \"%s\"; want none, bytes, chars, bpe or "
                "pieces",
                n, kind);
}
