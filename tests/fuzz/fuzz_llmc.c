// fuzz_llmc.c - reads any bytes as a model file of llm.c. Random bytes almost
// never have the length that their header says. So they are read twice: as they
// are, and then cut or padded with zeros to that length.

#include "model/checkpoint.h"
#include "model/llmc.h"

#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <string.h>

enum { HEADER_BYTES = 1024, MOST = 1 << 16 };

// Returns the length in bytes of a file with this header; 0 if the header is
// bad or the model too large.
static size_t asked(const int32_t *h)
{
    struct model_config c = {.context = h[2],
                             .vocab = h[3],
                             .layers = h[4],
                             .heads = h[5],
                             .channels = h[6]};
    if (model_check(&c) || h[7] < h[3] || h[7] - h[3] > 1000)
        return 0;
    size_t n = model_nparams(&c);
    n += (size_t)(h[7] - h[3]) * (size_t)c.channels;
    return n < MOST ? HEADER_BYTES + n * (h[1] == 5 ? 2 : 4) : 0;
}

static void read_one(const char *path)
{
    struct model_config c;
    if (checkpoint_config(path, &c))
        return;
    size_t n = model_nparams(&c);
    if (n > MOST)
        return;
    float *p = mem_alloc(n, sizeof *p);
    CHECK(p != NULL);
    p[0] = INFINITY;
    if (checkpoint_read(path, &c, p) == 0) {
        for (size_t i = 0; i < n; i++)
            CHECK(isfinite(p[i]));
    } else {
        CHECK(isinf(p[0]));
    }
    mem_free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t file[HEADER_BYTES + MOST * 4];
    if (size > sizeof file)
        return 0;
    memset(file, 0, sizeof file);
    memcpy(file, data, size);
    int32_t header[8];
    memcpy(header, file, sizeof header);
    char path[64];
    int fd = fuzz_file(data, size, path); // the bytes unchanged
    read_one(path);
    close(fd);
    size_t fit = asked(header);
    if (fit) {
        fd = fuzz_file(file, fit, path); // and padded or cut
        read_one(path);
        close(fd);
    }
    return 0;
}
