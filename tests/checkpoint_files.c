// checkpoint_files.c - right and wrong files of a tiny model.

#include "tests/checkpoint_files.h"

#include "model/llmc.h"

#include "base/base.h"
#include "base/rng.h"

#include <stdlib.h>
#include <unistd.h>

#include "tests/test.h"

const struct model_config tiny = {1, 2, 4, 3, 5, 0, {0}};
char folder[] = "/tmp/lockstep_checkpoint_XXXXXX", path[128];

int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    return text_into(path, sizeof path, "%s/model.safetensors", folder);
}

int remove_folder(void **state)
{
    (void)state;
    char other[160];
    snprintf(other, sizeof other, "%s.tmp", path);
    unlink(other);
    unlink(path);
    return rmdir(folder);
}

void load(struct bytes *b)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    b->n = fread(b->at, 1, sizeof b->at, f);
    assert_true(b->n < sizeof b->at);
    fclose(f);
}

void store(const struct bytes *b)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(b->at, 1, b->n, f), b->n);
    assert_int_equal(fclose(f), 0);
}

void append(struct bytes *b, const void *from, size_t n)
{
    assert_true(b->n + n <= sizeof b->at);
    memcpy(b->at + b->n, from, n);
    b->n += n;
}

void numbers(float *p, size_t n, uint64_t key)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (float)rng_normal(key, i);
}

void write_tiny(float *p)
{
    numbers(p, model_nparams(&tiny), 1);
    assert_int_equal(checkpoint_write(path, &tiny, p), 0);
}

int files_in_folder(void)
{
    char command[192];
    snprintf(command, sizeof command, "ls -A %s | wc -l", folder);
    FILE *f = popen(command, "r");
    int n = -1;
    assert_int_equal(fscanf(f, "%d", &n), 1);
    pclose(f);
    return n;
}

void refused(const struct model_config *c, const char *says)
{
    float p[MAX_PARAMS];
    for (size_t i = 0; i < MAX_PARAMS; i++)
        p[i] = 7;
    int status = checkpoint_read(path, c, p);
    if (status != -1 || !strstr(fail_message(), says))
        print_error("wanted \"%s\", got %d \"%s\"\n", says, status,
                    fail_message());
    assert_int_equal(status, -1);
    assert_non_null(strstr(fail_message(), says));
    assert_null(strchr(fail_message(), '\n'));
    for (size_t i = 0; i < MAX_PARAMS; i++)
        assert_true(p[i] == 7);
}

void accepted(const float *expected)
{
    float p[MAX_PARAMS] = {0};
    if (checkpoint_read(path, &tiny, p))
        die("%s", fail_message());
    for (size_t i = 0; i < model_nparams(&tiny); i++)
        assert_true(p[i] == expected[i]);
}

// Builds a safetensors file of these entries, in the order of Hugging Face's
// writer.
static void build(const struct entry *e, int n)
{
    static struct bytes b;
    char header[MAX_FILE / 2] = "{";
    size_t at = 1, off = 0;
    for (int i = 0; i < n; i++) {
        at += (size_t)snprintf(header + at, sizeof header - at,
                               "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],"
                               "\"data_offsets\":[%zu,%zu]}",
                               i ? "," : "", e[i].name, e[i].dtype, e[i].shape,
                               off, off + e[i].bytes);
        off += e[i].bytes;
    }
    header[at++] = '}';
    uint64_t length = at;
    b.n = 0;
    append(&b, &length, 8);
    append(&b, header, at);
    for (int i = 0; i < n; i++)
        append(&b, e[i].data, e[i].bytes);
    store(&b);
}

void build_model(const char *dtype, const char *prefix,
                 const struct entry *more, int nmore, float *expected)
{
    static struct entry e[32];
    static char names[32][64], shapes[32][32];
    static double wide[MAX_PARAMS];
    static uint16_t half[MAX_PARAMS];
    size_t n = model_nparams(&tiny);
    bool f16 = strcmp(dtype, "F16") == 0, f64 = strcmp(dtype, "F64") == 0;
    bool narrow = strcmp(dtype, "F32") == 0;
    numbers(expected, n, 9);
    for (size_t i = 0; i < n; i++) {
        wide[i] = expected[i];
        half[i] =
            f16 ? f16_from_float(expected[i]) : bf16_from_float(expected[i]);
    }
    int count = model_ntensors(&tiny);
    for (int i = 0; i < count; i++) {
        struct tensor t;
        model_tensor(&tiny, i, &t);
        snprintf(names[i], sizeof names[i], "%s%s", prefix, t.name);
        snprintf(shapes[i], sizeof shapes[i], t.ndim == 2 ? "%zu,%zu" : "%zu",
                 t.shape[0], t.shape[1]);
        const void *data = narrow ? (void *)(expected + t.off)
                           : f64  ? (void *)(wide + t.off)
                                  : (void *)(half + t.off);
        size_t size = narrow ? 4 : f64 ? 8 : 2;
        e[i] = (struct entry){names[i], dtype, shapes[i], data, t.n * size};
    }
    for (int i = 0; i < nmore; i++)
        e[count + i] = more[i];
    build(e, count + nmore);
    for (size_t i = 0; i < n && !narrow && !f64; i++)
        expected[i] = f16 ? f16_to_float(half[i]) : bf16_to_float(half[i]);
}

void build_llmc(const struct model_config *c, int version, int padded,
                const float *p)
{
    static struct bytes b;
    b.n = 0;
    int32_t header[256] = {LLMC_MODEL, version,  c->context,  c->vocab,
                           c->layers,  c->heads, c->channels, padded};
    append(&b, header, sizeof header);
    int n = model_ntensors(c);
    for (int step = 0; step < n; step++) {
        int k = step - 2, i = step; // outer loop: kind; inner: layer
        if (k >= 0 && step < n - 2)
            i = 2 + k % c->layers * MODEL_PER_LAYER + k / c->layers;
        struct tensor t;
        model_tensor(c, i, &t);
        size_t rows = i > 1 && t.ndim == 2 ? t.shape[1] : 1;
        size_t columns = t.n / rows, extra = 0;
        if (i == 0)
            extra = (size_t)(padded - c->vocab) * (size_t)c->channels;
        for (size_t at = 0; at < t.n + extra; at++) {
            float x =
                at < t.n ? p[t.off + at % columns * rows + at / columns] : 0;
            uint16_t half = bf16_from_float(x);
            append(&b, version == 5 ? (void *)&half : (void *)&x,
                   version == 5 ? 2 : 4);
        }
    }
    store(&b);
}
