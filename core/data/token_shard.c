// token_shard.c - checks the header of an llm.c shard, or reads a .bin without
// a header.
//
// A file of nanoGPT has no header: it may begin with any number. So a file that
// begins with an unknown number is taken for a broken shard of llm.c only in
// two cases: version and length, at their places in the header, agree with the
// file; or the number is the magic number of another kind of llm.c's files.

#include "data/token_shard.h"

#include "base/base.h"

#include <string.h>

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
