// fuzz_safetensors.c - any bytes as a checkpoint: refused with a message, or a
// model whose numbers are all finite. Never a crash, never half an answer.

#include "model/checkpoint.h"

#include "tests/fuzz/fuzz.h"

#include <math.h>

static const char *const slot_names[] = {"exp_avg", "exp_avg_sq"};

static void read_one(const char *path, struct model_config c)
{
    size_t n = model_nparams(&c);
    if (n > 1 << 20) // inputs are small: what they claim cannot be there
        return;
    float *p = mem_alloc(3 * n, sizeof *p);
    CHECK(p != NULL);
    float *slots[] = {p + n, p + 2 * n};
    p[0] = INFINITY; // not to be seen again, unless nothing was written
    if (checkpoint_read(path, &c, p, 0, NULL, NULL) == 0) {
        for (size_t i = 0; i < n; i++)
            CHECK(isfinite(p[i]));
    } else {
        CHECK(isinf(p[0]));
    }
    p[n] = INFINITY;
    int status = checkpoint_read(path, &c, NULL, 2, slot_names, slots);
    CHECK(isinf(p[n]) == (status != 0));
    mem_free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64], text[16];
    int fd = fuzz_file(data, size, path);
    struct model_config c;
    if (checkpoint_config(path, &c) == 0) {
        if (c.heads == 0)
            c.heads = 1;
        if (model_check(&c) == 0)
            read_one(path, c);
    }
    c = (struct model_config){1, 1, 2, 1, 2, 0};
    read_one(path, c);
    (void)checkpoint_metadata(path, "heads", text, sizeof text);
    close(fd);
    return 0;
}
