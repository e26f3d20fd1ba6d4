// bpe.c - reads, checks, searches and writes the table of merges.
//
// vocab.bpe writes each byte as one printable character. A printable byte is
// written as itself. The other 68 are written as U+0100 and up. So a blank can
// separate the two halves of a line. Each half must be one byte or the token of
// an earlier line, and no two lines may make the same token. So the order of
// the lines alone gives the ids.

#include "data/bpe.h"

#include "base/base.h"
#include "data/utf8.h"

#include <stdbool.h>
#include <string.h>

enum {
    OTHERS = 68,           // bytes that are not printable
    LETTERS = 256 + OTHERS // all code points that stand for bytes are below
};

static const char end_of_text[] = "<|endoftext|>";

struct pair {
    uint32_t halves; // left << 16 | right
    uint32_t joined; // 0: the slot is empty
};

struct bpe {
    size_t merges;
    size_t *start;      // (256 + merges + 2): where a token's bytes begin
    char *bytes;        // of all tokens, by id
    uint32_t *halves;   // (merges): left << 16 | right
    struct pair *pairs; // open addressing
    uint32_t *names;    // while reading, a hash table by a token's bytes:
                        // token + 1; 0: the slot is empty
    size_t slots;       // of `pairs` and of `names`, a power of two
    uint16_t code[256]; // byte to code point
    uint8_t token_of[256];
    int16_t byte_of[LETTERS]; // code point to byte, -1 for none
};

struct reader {
    const char *name;
    const unsigned char *at, *end;
    size_t line;
};

struct half {
    char bytes[BPE_LONGEST];
    size_t n;
};

static void fill_alphabet(struct bpe *b)
{
    memset(b->byte_of, 0xff, sizeof b->byte_of);
    for (int byte = 0, shown = 0, others = 0; byte < 256; byte++) {
        bool printable =
            (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
        int code = printable ? byte : 256 + others;
        int token = printable ? shown++ : 256 - OTHERS + others++;
        b->code[byte] = (uint16_t)code;
        b->byte_of[code] = (int16_t)byte;
        b->token_of[byte] = (uint8_t)token;
        b->bytes[token] = (char)(unsigned char)byte;
        b->start[byte + 1] = (size_t)byte + 1;
    }
}

// ---- lookups

const char *bpe_token(const struct bpe *b, size_t token, size_t *n)
{
    *n = token < bpe_size(b) ? b->start[token + 1] - b->start[token] : 0;
    return *n ? b->bytes + b->start[token] : NULL;
}

size_t bpe_size(const struct bpe *b)
{
    return BPE_BYTES + b->merges + 1;
}

uint32_t bpe_byte(const struct bpe *b, unsigned char byte)
{
    return b->token_of[byte];
}

// The slot of the pair, or the empty slot into which it belongs.
static struct pair *pair_slot(const struct bpe *b, uint32_t halves)
{
    size_t i = (size_t)(halves * 0x9e3779b97f4a7c15u >> 32) & (b->slots - 1);
    while (b->pairs[i].joined && b->pairs[i].halves != halves)
        i = (i + 1) & (b->slots - 1);
    return &b->pairs[i];
}

uint32_t bpe_join(const struct bpe *b, uint32_t left, uint32_t right)
{
    const struct pair *p = pair_slot(b, left << 16 | right);
    return p->joined ? p->joined : BPE_NONE;
}

// ---- reading

static uint32_t *name_slot(const struct bpe *b, const char *bytes, size_t n)
{
    size_t i = (size_t)hash_bytes(bytes, n) & (b->slots - 1);
    for (; b->names[i]; i = (i + 1) & (b->slots - 1)) {
        size_t len;
        const char *token = bpe_token(b, b->names[i] - 1, &len);
        if (len == n && memcmp(token, bytes, n) == 0)
            break;
    }
    return &b->names[i];
}

// Reads one half of a line and the character `stop` after it. 0, or -1 after
// fail().
static int read_half(const struct bpe *b, struct reader *r, uint32_t stop,
                     struct half *h)
{
    h->n = 0;
    for (;;) {
        if (r->at == r->end)
            return fail("vocab=%s:%zu: the last line has no end; try: copy "
                        "the file again, it may be incomplete",
                        r->name, r->line);
        uint32_t c;
        r->at += utf8_next(r->at, (size_t)(r->end - r->at), &c);
        if (c == stop && h->n > 0)
            return 0;
        if (c == ' ' || c == '\n')
            return fail("vocab=%s:%zu: want two tokens with a blank between",
                        r->name, r->line);
        if (c >= LETTERS || b->byte_of[c] < 0)
            return fail("vocab=%s:%zu: U+%04X is not a letter of GPT-2's byte "
                        "alphabet",
                        r->name, r->line, c);
        if (h->n == BPE_LONGEST)
            return fail("vocab=%s:%zu: a token of more than %d bytes", r->name,
                        r->line, (int)BPE_LONGEST);
        h->bytes[h->n++] = (char)b->byte_of[c];
    }
}

// The half's token, or BPE_NONE after fail().
static uint32_t find_half(const struct bpe *b, const struct reader *r,
                          const struct half *h)
{
    uint32_t found = *name_slot(b, h->bytes, h->n);
    if (found)
        return found - 1;
    fail("vocab=%s:%zu: a half of %zu bytes is not a token of an earlier line",
         r->name, r->line, h->n);
    return BPE_NONE;
}

static int read_merge(struct bpe *b, struct reader *r)
{
    struct half left, right;
    r->line++;
    if (read_half(b, r, ' ', &left) || read_half(b, r, '\n', &right))
        return -1;
    uint32_t first = find_half(b, r, &left), second = find_half(b, r, &right);
    if (first == BPE_NONE || second == BPE_NONE)
        return -1;
    if (left.n + right.n > BPE_LONGEST)
        return fail("vocab=%s:%zu: a token of %zu bytes, at most %d", r->name,
                    r->line, left.n + right.n, (int)BPE_LONGEST);
    size_t token = BPE_BYTES + b->merges;
    char *at = b->bytes + b->start[token];
    memcpy(at, left.bytes, left.n);
    memcpy(at + left.n, right.bytes, right.n);
    uint32_t *name = name_slot(b, at, left.n + right.n);
    if (*name)
        return fail("vocab=%s:%zu: makes token %u a second time", r->name,
                    r->line, *name - 1);
    b->start[token + 1] = b->start[token] + left.n + right.n;
    uint32_t halves = first << 16 | second;
    b->halves[b->merges++] = halves;
    *pair_slot(b, halves) = (struct pair){halves, (uint32_t)token};
    *name = (uint32_t)token + 1;
    return 0;
}

static int read_version(struct reader *r)
{
    static const char want[] = "#version";
    size_t n = (size_t)(r->end - r->at);
    const unsigned char *newline = memchr(r->at, '\n', n);
    r->line = 1;
    if (n < sizeof want || memcmp(r->at, want, sizeof want - 1) || !newline)
        return fail("vocab=%s: does not begin with \"%s\"; try: GPT-2's "
                    "vocab.bpe, or a merges.txt",
                    r->name, want);
    r->at = newline + 1;
    return 0;
}

static int read_table(struct bpe *b, struct reader *r)
{
    fill_alphabet(b);
    for (uint32_t i = 0; i < BPE_BYTES; i++)
        *name_slot(b, b->bytes + i, 1) = i + 1;
    while (r->at < r->end)
        if (read_merge(b, r))
            return -1;
    size_t last = BPE_BYTES + b->merges, n = sizeof end_of_text - 1;
    memcpy(b->bytes + b->start[last], end_of_text, n);
    b->start[last + 1] = b->start[last] + n;
    mem_free(b->names);
    b->names = NULL;
    return 0;
}

static size_t count_lines(const struct reader *r)
{
    size_t lines = 1; // the last line may lack a newline
    for (const unsigned char *p = r->at; p < r->end; p++)
        lines += *p == '\n';
    return lines;
}

int bpe_open(struct bpe **out, const char *name, const char *text, size_t n)
{
    const unsigned char *at = (const unsigned char *)text;
    struct reader r = {.name = name, .at = at, .end = at + n};
    if (read_version(&r))
        return -1;
    size_t lines = count_lines(&r);
    if (lines > BPE_MERGES + 1)
        return fail("vocab=%s: %zu lines, more than the %d merges that tokens "
                    "of 16 bits can name",
                    name, lines, (int)BPE_MERGES);
    struct bpe *b = mem_alloc(1, sizeof *b);
    if (!b)
        return -1;
    b->slots = 1024;
    while (b->slots < 2 * (lines + BPE_BYTES))
        b->slots *= 2;
    b->start = mem_alloc(BPE_BYTES + lines + 2, sizeof *b->start);
    b->bytes = mem_alloc(BPE_BYTES + n + sizeof end_of_text, 1);
    b->halves = mem_alloc(lines, sizeof *b->halves);
    b->pairs = mem_alloc(b->slots, sizeof *b->pairs);
    b->names = mem_alloc(b->slots, sizeof *b->names);
    if (!b->start || !b->bytes || !b->halves || !b->pairs || !b->names ||
        read_table(b, &r)) {
        bpe_close(&b);
        return -1;
    }
    *out = b;
    return 0;
}

void bpe_close(struct bpe **out)
{
    struct bpe *b = *out;
    if (!b)
        return;
    mem_free(b->start);
    mem_free(b->bytes);
    mem_free(b->halves);
    mem_free(b->pairs);
    mem_free(b->names);
    mem_free(b);
    *out = NULL;
}

static void write_token(const struct bpe *b, uint32_t token, FILE *f)
{
    size_t n;
    const char *bytes = bpe_token(b, token, &n);
    for (size_t i = 0; i < n; i++) {
        char out[4];
        size_t len = utf8_put(b->code[(unsigned char)bytes[i]], out);
        fwrite(out, 1, len, f);
    }
}

void bpe_write(const struct bpe *b, FILE *f)
{
    fputs("#version: 0.2\n", f);
    for (size_t i = 0; i < b->merges; i++) {
        write_token(b, b->halves[i] >> 16, f);
        fputc(' ', f);
        write_token(b, b->halves[i] & 0xffff, f);
        fputc('\n', f);
    }
}
