// fuzz_squeeze.c - adds any bytes as a message of compressed gradients. Nothing
// outside of the message may be read, nor outside of the vector written.
//
//     byte 0: the compressor and levels=, or a server's answer to topk; of demo
//             the rows
//     byte 1, 2: elements;  the rest: message

#include "squeeze/cosines.h"
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

// A matrix of demo. What is taken is decoded, beside itself.
static void add_demo(const struct sync_settings *set, size_t n, size_t rows,
                     const uint8_t *data, size_t size)
{
    struct demo_grid g = demo_grid(set, n / rows * rows, rows);
    size_t bytes = demo_bytes(&g);
    char *messages = calloc(2, bytes),
         *scratch = malloc(squeeze_demo.scratch(n));
    float *out = calloc(n, sizeof *out);
    CHECK(messages && scratch && out);
    memcpy(messages, data, size < bytes ? size : bytes);
    memcpy(messages + bytes, messages, bytes);
    if (demo_check(&g, messages))
        CHECK(*fail_message());
    else
        demo_signs(&g, messages, 2, out, scratch);
    free(messages);
    free(scratch);
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sync_settings set = {.density = 0.1};
    if (size < HEAD)
        return 0;
    size_t kind = data[0] % (SQUEEZE_SIGN + 2), rows = 1 + data[0] / 8;
    set.squeeze = kind > SQUEEZE_SIGN ? SQUEEZE_DEMO : (enum squeeze_kind)kind;
    set.levels = 1 + data[0] % 127;
    size_t n = (data[1] + 256u * data[2]) % (MOST + 1);
    if (set.squeeze == SQUEEZE_NONE) {
        add_union(n, data + HEAD, size - HEAD);
        return 0;
    }
    if (set.squeeze == SQUEEZE_DEMO && n >= rows)
        add_demo(&set, n, rows, data + HEAD, size - HEAD);
    else if (set.squeeze != SQUEEZE_DEMO)
        add(&set, n, data + HEAD, size - HEAD);
    return 0;
}
