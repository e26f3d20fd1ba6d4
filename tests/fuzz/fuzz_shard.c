// fuzz_shard.c - reads any bytes as a .bin file, and as saved symbols. Nothing
// that the readers return may be outside the bytes.

#include "data/tokens.h"

#include "base/base.h"
#include "data/symbols.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void as_shard(const uint8_t *data, size_t size)
{
    struct file f = {data, size};
    struct tokens t;
    (void)shard_is(&f, "fuzz");
    if (size == 0 || shard_read(&f, "fuzz.bin", &t))
        return;
    const uint8_t *at = t.at;
    CHECK(t.width == 2 && t.n > 0 && at >= data);
    CHECK((size_t)(at - data) + t.width * t.n == size);
    uint64_t hash = 0;
    uint32_t largest = 0;
    int32_t last;
    tokens_scan(&t, &hash, &largest);
    tokens_copy(&t, t.n - 1, 1, &last);
    CHECK((uint32_t)last <= largest);
}

static void as_symbols(const uint8_t *data, size_t size)
{
    struct symbols s;
    char *text = strndup((const char *)data, size);
    CHECK(text != NULL);
    if (symbols_load(&s, text) == 0) {
        char out[256];
        for (int32_t token = -1; token < (int32_t)s.n + 1; token++)
            CHECK(symbols_decode(&s, token, out) <= sizeof out);
        symbols_close(&s);
    }
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    as_shard(data, size);
    if (size > 0)
        as_symbols(data, size);
    return 0;
}
