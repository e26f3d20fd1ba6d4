// tokens.c - copies and splits tokens, computes their hash and maximum; reads
// the header of an llm.c shard, or a .bin without one.
//
// A file of nanoGPT has no header: it may begin with any number. So a file that
// begins with an unknown number is taken for a broken shard of llm.c only in
// two cases: version and length, at their places in the header, agree with the
// file; or the number is the magic number of another kind of llm.c's files.

#include "data/tokens.h"

#include "base/base.h"

#include <string.h>

// In tokens: so few that the hash finds the block in the cache, where the pass
// for the maximum has left it.
enum { BLOCK = 1 << 18 };

void tokens_copy(const struct tokens *t, size_t from, size_t n, int32_t *out)
{
    CHECK(from <= t->n && n <= t->n - from);
    const uint8_t *narrow = t->at;
    const uint16_t *wide = t->at;
    if (t->width == 1)
        for (size_t i = 0; i < n; i++)
            out[i] = narrow[from + i];
    else
        for (size_t i = 0; i < n; i++)
            out[i] = wide[from + i];
}

struct tokens tokens_part(const struct tokens *t, size_t from, size_t n)
{
    CHECK(from <= t->n && n <= t->n - from);
    const char *at = t->at;
    return (struct tokens){at + from * t->width, n, t->width};
}

static uint32_t largest_of(const struct tokens *t)
{
    const uint8_t *narrow = t->at;
    const uint16_t *wide = t->at;
    uint32_t most = 0;
    if (t->width == 1)
        for (size_t i = 0; i < t->n; i++)
            most = narrow[i] > most ? narrow[i] : most;
    else
        for (size_t i = 0; i < t->n; i++)
            most = wide[i] > most ? wide[i] : most;
    return most;
}

void tokens_scan(const struct tokens *t, uint64_t *hash, uint32_t *largest)
{
    for (size_t from = 0; from < t->n; from += BLOCK) {
        size_t n = t->n - from < BLOCK ? t->n - from : BLOCK;
        struct tokens block = tokens_part(t, from, n);
        uint32_t most = largest_of(&block);
        *largest = most > *largest ? most : *largest;
        *hash = hash_more(*hash, block.at, n * t->width);
    }
}

// ---- files

enum {
    MAGIC = 20240520,
    VERSION = 1,
    HEADER = 256, // int32
    HEADER_BYTES = 4 * HEADER,
};

static const struct {
    int32_t magic;
    const char *what;
} others[] = {
    {20240326, "a model"},
    {20240327, "a debug state"},
    {20240328, "a tokenizer"},
    {20240522, "an evaluation file"},
    {20240527, "an optimiser state"},
    {20240801, "a shard of 32-bit Llama 3 tokens"},
};

static int32_t header_word(const struct file *f, int i)
{
    int32_t word = 0;
    size_t off = 4 * (size_t)i;
    if (f->bytes >= off + 4)
        memcpy(&word, f->at + off, 4);
    return word;
}

static bool length_agrees(const struct file *f)
{
    int32_t n = header_word(f, 2);
    return n > 0 && f->bytes == HEADER_BYTES + 2 * (size_t)n;
}

static bool rest_is_zero(const struct file *f)
{
    for (int i = 3; i < HEADER; i++)
        if (header_word(f, i))
            return false;
    return true;
}

bool shard_is(const struct file *f, const char *path)
{
    size_t n = strlen(path);
    return header_word(f, 0) == MAGIC ||
           (n >= 4 && strcmp(path + n - 4, ".bin") == 0);
}

static int read_llmc(const struct file *f, const char *path, struct tokens *out)
{
    int32_t version = header_word(f, 1), n = header_word(f, 2);
    if (f->bytes < HEADER_BYTES)
        return fail("data=%s: %zu bytes, shorter than the %d of a shard's "
                    "header",
                    path, f->bytes, (int)HEADER_BYTES);
    if (version != VERSION)
        return fail("data=%s: shard of version %d, want %d", path, version,
                    (int)VERSION);
    if (!length_agrees(f))
        return fail("data=%s: the header says %d tokens, which need %lld "
                    "bytes, but the file has %zu; try: fetch or write it again",
                    path, n, (long long)HEADER_BYTES + 2 * (long long)n,
                    f->bytes);
    *out = (struct tokens){f->at + HEADER_BYTES, (size_t)n, 2};
    return 0;
}

int shard_read(const struct file *f, const char *path, struct tokens *out)
{
    int32_t magic = header_word(f, 0);
    if (magic == MAGIC)
        return read_llmc(f, path, out);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (magic == others[i].magic)
            return fail("data=%s: magic %d is %s of llm.c, a data shard has %d",
                        path, magic, others[i].what, (int)MAGIC);
    if (header_word(f, 1) == VERSION && length_agrees(f) && rest_is_zero(f))
        return fail("data=%s: wrong magic %d, a data shard of llm.c has %d",
                    path, magic, (int)MAGIC);
    if (f->bytes % 2)
        return fail("data=%s: %zu bytes, an odd number, are not 16-bit tokens; "
                    "try: another name if it is text",
                    path, f->bytes);
    *out = (struct tokens){f->at, f->bytes / 2, 2};
    return 0;
}
