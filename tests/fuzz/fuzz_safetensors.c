// fuzz_safetensors.c - reads any bytes as a checkpoint. The reader must either
// refuse them and leave the parameters as they are, or return a model whose
// numbers are all finite. It must not crash.

#include "model/checkpoint.h"

#include "tests/fuzz/fuzz.h"

#include <math.h>

static const char *const slot_names[] = {"exp_avg", "exp_avg_sq"};

static void read_slots(const char *path, const struct model_config *c, float *p)
{
    struct checkpoint *k;
    size_t n = model_nparams(c);
    if (checkpoint_open(&k, path, c, 2, slot_names))
        return;
    for (int slot = 0; slot < 2; slot++) {
        CHECK(checkpoint_read_range(k, slot, 0, p, n) == 0);
        for (size_t i = 0; i < n; i++)
            CHECK(isfinite(p[i]));
    }
    checkpoint_close(&k);
}

static void read_one(const char *path, struct model_config c)
{
    size_t n = model_nparams(&c);
    if (n > 1 << 20) // inputs are too small to have so many parameters
        return;
    float *p = mem_alloc(n, sizeof *p);
    CHECK(p != NULL);
    p[0] = INFINITY; // stays only if nothing is written
    if (checkpoint_read(path, &c, p) == 0) {
        for (size_t i = 0; i < n; i++)
            CHECK(isfinite(p[i]));
    } else {
        CHECK(isinf(p[0]));
    }
    read_slots(path, &c, p);
    mem_free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    int fd = fuzz_file(data, size, path);
    struct model_config c;
    if (checkpoint_config(path, &c) == 0) {
        if (c.heads == 0)
            c.heads = 1;
        if (model_check(&c) == 0)
            read_one(path, c);
    }
    c = (struct model_config){1, 1, 2, 1, 2, 0, {0}};
    read_one(path, c);
    close(fd);
    return 0;
}
