// fuzz_wordpiece.c - reads any bytes up to a zero byte as a vocab.txt, and the
// bytes after it as a text. The vocabulary may be accepted or refused. The text
// has at most a token for each byte, and each token has a text.

#include "base/base.h"
#include "data/wordpiece.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void encode(const struct wordpiece *w, const char *text, size_t n)
{
    uint16_t *tokens = malloc(n * sizeof *tokens + 1);
    CHECK(tokens != NULL);
    long count = wordpiece_encode(w, text, n, tokens);
    CHECK(count >= 0 && (size_t)count <= n);
    for (long i = 0; i < count; i++) {
        char part[WORDPIECE_LONGEST + 1];
        CHECK(tokens[i] < wordpiece_size(w));
        size_t len = wordpiece_decode(w, tokens[i], part);
        CHECK(len > 0 && len <= sizeof part);
    }
    free(tokens);
}

static void written_is_the_same(const struct wordpiece *w)
{
    char *text = NULL;
    size_t n;
    struct wordpiece *again;
    FILE *f = open_memstream(&text, &n);
    CHECK(f != NULL);
    wordpiece_write(w, f);
    CHECK(fclose(f) == 0 && wordpiece_open(&again, "again", text, n) == 0);
    CHECK(wordpiece_size(again) == wordpiece_size(w));
    wordpiece_close(&again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *zero = size ? memchr(data, 0, size) : NULL;
    size_t table = zero ? (size_t)(zero - data) : size;
    struct wordpiece *w;
    if (wordpiece_open(&w, "fuzz", (const char *)data, table))
        return 0;
    written_is_the_same(w);
    if (zero)
        encode(w, (const char *)zero + 1, size - table - 1);
    wordpiece_close(&w);
    return 0;
}
