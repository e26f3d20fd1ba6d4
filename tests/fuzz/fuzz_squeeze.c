// fuzz_squeeze.c - adds any bytes as a message of compressed gradients. Nothing
// outside of the message may be read, nor outside of the vector written.
//
//     byte 0: the compressor and levels=, or a server's answer to topk
//     byte 1, 2: elements;  the rest: message

#include "squeeze/squeeze.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEAD = 3, MOST = 1024 };

// What is missing at the end of the message is zero.
static void add(const struct sync_settings *set, size_t n, const uint8_t *data,
                size_t size)
{
    const struct squeeze_ops *ops = squeeze_find(set->squeeze);
    size_t bytes = ops->bytes(set, n);
    char *message = calloc(bytes + !bytes, 1);
    float *sum = calloc(n + !n, sizeof *sum);
    CHECK(message && sum);
    memcpy(message, data, size < bytes ? size : bytes);
    if (ops->add(set, message, n, sum))
        CHECK(*fail_message());
    free(message);
    free(sum);
}

// An answer is as long as it is.
static void add_union(size_t n, const uint8_t *data, size_t size)
{
    char *message = malloc(size + !size);
    float *sum = calloc(n + !n, sizeof *sum);
    CHECK(message && sum);
    memcpy(message, data, size);
    if (squeeze_add_union(message, size, n, sum))
        CHECK(*fail_message());
    free(message);
    free(sum);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sync_settings set = {.density = 0.1};
    if (size < HEAD)
        return 0;
    set.squeeze = (enum squeeze_kind)(data[0] % (SQUEEZE_SIGN + 1));
    set.levels = 1 + data[0] % 127;
    size_t n = (data[1] + 256u * data[2]) % (MOST + 1);
    if (set.squeeze == SQUEEZE_NONE) {
        add_union(n, data + HEAD, size - HEAD);
        return 0;
    }
    add(&set, n, data + HEAD, size - HEAD);
    return 0;
}
