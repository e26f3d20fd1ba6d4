// fuzz_bpe.c - reads any bytes up to a zero byte as a vocab.bpe, and the bytes
// after it as a text. The table may be accepted or refused. Decoding the text's
// tokens must give the text.

#include "base/base.h"
#include "data/symbols.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void there_and_back(const struct symbols *s, const char *text, size_t n)
{
    uint16_t *tokens = malloc(n * sizeof *tokens + 1);
    CHECK(tokens != NULL);
    long count = symbols_encode(s, text, n, tokens);
    CHECK(count >= 0 && (size_t)count <= n);
    size_t at = 0;
    for (long i = 0; i < count; i++) {
        char part[256];
        size_t len = symbols_decode(s, tokens[i], part);
        CHECK(len <= n - at && memcmp(part, text + at, len) == 0);
        at += len;
    }
    CHECK(at == n);
    free(tokens);
}

static void saved_is_the_same(const struct symbols *s)
{
    struct symbols again;
    char *saved = symbols_save(s);
    CHECK(saved != NULL && symbols_load(&again, saved) == 0);
    char *twice = symbols_save(&again);
    CHECK(twice != NULL && strcmp(saved, twice) == 0);
    free(saved);
    free(twice);
    symbols_close(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *zero = size ? memchr(data, 0, size) : NULL;
    size_t table = zero ? (size_t)(zero - data) : size;
    struct symbols s = {.kind = SYMBOLS_BPE};
    if (bpe_open(&s.bpe, "fuzz", (const char *)data, table))
        return 0;
    s.n = bpe_size(s.bpe);
    saved_is_the_same(&s);
    if (zero)
        there_and_back(&s, (const char *)zero + 1, size - table - 1);
    symbols_close(&s);
    return 0;
}
