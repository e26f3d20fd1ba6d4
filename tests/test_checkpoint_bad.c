// test_checkpoint_bad.c - checkpoint files that are wrong in every way that we
// know. Each is refused with one line that says why, and none of its numbers is
// read.

#include "tests/checkpoint_files.h"

#include "base/base.h"

#include <errno.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/test.h"

// Replaces the first `from` of the header by `to`, and corrects the length of
// the header.
static void edit(struct bytes *b, const char *from, const char *to)
{
    uint64_t n;
    memcpy(&n, b->at, 8);
    char *found = memmem(b->at + 8, n, from, strlen(from));
    if (!found)
        die("the header has no %s", from);
    size_t behind = b->n - (size_t)(found - b->at) - strlen(from);
    assert_true(b->n + strlen(to) < sizeof b->at);
    memmove(found + strlen(to), found + strlen(from), behind);
    memcpy(found, to, strlen(to));
    b->n += strlen(to) - strlen(from);
    n += strlen(to) - strlen(from);
    memcpy(b->at, &n, 8);
}

static const struct {
    const char *from, *to, *says;
} bad_headers[] = {
    {"[80,128]", "[76,124]", "overlap"},
    {"[80,128]", "[84,132]", "leave a hole"},
    {"[0,80]", "[0,99999999]", "[0, 99999999) are outside"},
    {"[0,80]", "[80,0]", "are outside"},
    {"[0,80]", "[-1,79]", "two counts"},
    {"[0,80]", "[0,1e30]", "two counts"},
    {"[0,80]", "[0.5,80.5]", "two counts"},
    {"[0,80]", "[0]", "two counts"},
    {"[0,80]", "[0,80,80]", "two counts"},
    {"[0,80]", "[\"0\",80]", "two counts"},
    {"[0,80]", "[0,18446744073709551616]", "two counts"},
    {"[0,80]", "80", "data_offsets"},
    {"[5,4]", "[4,5]", "wte.weight is (4,5), this model's is (5,4)"},
    {"[5,4]", "[20]", "wte.weight is (20)"},
    {"[5,4]", "[5,5]", "25 elements of F32 do not fill its 80 bytes"},
    {"[5,4]", "[-5,-4]", "not a count"},
    {"[5,4]", "[1e30,4]", "not a count"},
    {"[5,4]", "[4294967296,4294967296,20]", "too many elements"},
    {"[5,4]", "[4611686018427387904,5]", "not a count"},
    {"[5,4]", "[9007199254740992,1024,2]", "too many elements"},
    {"[5,4]", "[4503599627370496,1024]", "do not fill"},
    {"[5,4]", "[1,1,1,1,1,1,1,5,4]", "more than 8 dimensions"},
    {"[5,4]", "{}", "shape"},
    {"\"F32\"", "\"F99\"", "unknown dtype \"F99\""},
    {"\"F32\"", "\"F\\n\"", "unknown dtype"},
    {"\"F32\"", "\"I32\"", "dtype I32, must be F32"},
    {"\"F32\"", "32", "dtype"},
    {"\"dtype\":\"F32\",", "", "lacks dtype"},
    {"\"dtype\":\"F32\",", "\"dtype\":\"F32\",\"dtype\":\"F16\",",
     "\"dtype\" occurs twice"},
    {"\"dtype\"", "\"strides\":[4,1],\"dtype\"", "\"strides\" is unknown"},
    {"\"wpe.weight\"", "\"wte.weight\"", "\"wte.weight\" occurs twice"},
    {"\"wpe.weight\"", "\"wqe.weight\"", "unknown tensor wqe.weight"},
    {"\"wpe.weight\"", "\"h.1.ln_1.bias\"", "in a GPT-2 of 1 layers"},
    {"\"wpe.weight\"", "\"h.-1.ln_1.bias\"", "unknown tensor h.-1"},
    {"\"wpe.weight\"", "\"h.99999999999999999999.x\"", "unknown tensor h.9"},
    {"\"wpe.weight\"", "\"h.00.ln_1.bias\"", "unknown tensor h.00"},
    {"\"wpe.weight\"", "\"h.0.attn.bias\"", "wpe.weight is missing"},
    {"\"wpe.weight\"", "\"wpe\\u0000.weight\"", "NUL"},
    {"\"wpe.weight\"", "\"wpe\\n\"", "control characters"},
    {"\"format\":\"pt\"", "\"format\":1", "not a string"},
    {"\"format\":\"pt\"", "\"heads\":\"2\"", "\"heads\" occurs twice"},
    {"{\"format\":\"pt\",\"heads\":\"2\"}", "7", "not a JSON object"},
    {"\"heads\":\"2\"", "\"heads\":\"two\"", "metadata heads"},
    {"\"heads\":\"2\"", "\"heads\":\"1e30\"", "metadata heads"},
    {"\"heads\":\"2\"", "\"heads\":\"4\"", "heads=4, this one heads=2"},
    {"{\"__metadata__\"", "[\"__metadata__\"", "not with '{'"},
    {"{\"__metadata__\"", "\n{\"__metadata__\"", "not with '{'"},
    {"\"__metadata__\":", "\"__metadata__\"", "not a JSON object"},
    {"}}", "}}x", "not a JSON object"},
};

static void bad_headers_are_refused(void **state)
{
    (void)state;
    float p[MAX_PARAMS];
    static struct bytes good, bad;
    write_tiny(p);
    load(&good);
    for (size_t i = 0; i < sizeof bad_headers / sizeof bad_headers[0]; i++) {
        bad = good;
        edit(&bad, bad_headers[i].from, bad_headers[i].to);
        store(&bad);
        refused(&tiny, bad_headers[i].says);
    }
    store(&good);
    accepted(p);
}

static void bad_lengths_are_refused(void **state)
{
    (void)state;
    float p[MAX_PARAMS];
    static struct bytes good, bad;
    write_tiny(p);
    load(&good);
    const uint64_t lengths[] = {0,          1,         9,       good.n - 8,
                                good.n - 7, good.n,    1 << 30, 100000001,
                                INT64_MAX,  UINT64_MAX};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        bad = good;
        memcpy(bad.at, &lengths[i], 8);
        store(&bad);
        refused(&tiny, path);
    }
    for (size_t n = 0; n < good.n; n += n < 600 ? 1 : 97) { // truncated
        bad = good;
        bad.n = n;
        store(&bad);
        refused(&tiny, path);
    }
    bad = good;
    append(&bad, "....", 4);
    store(&bad);
    refused(&tiny, "bytes of data, tensors fill");
}

static void bad_numbers_are_refused(void **state)
{
    (void)state;
    float p[MAX_PARAMS];
    size_t n = model_nparams(&tiny);
    numbers(p, n, 1);
    p[n - 1] = NAN; // the last number: the check must reach it
    assert_int_equal(checkpoint_write(path, &tiny, p), 0);
    refused(&tiny, "ln_f.bias: element 3 is nan");
    p[n - 1] = -INFINITY;
    assert_int_equal(checkpoint_write(path, &tiny, p), 0);
    refused(&tiny, "is -inf");
}

static void other_models_are_refused(void **state)
{
    (void)state;
    float p[MAX_PARAMS];
    write_tiny(p);
    struct model_config c = tiny;
    c.layers = 2;
    refused(&c, "h.1.ln_1.weight is missing");
    c = tiny, c.vocab = 6;
    refused(&c, "(5,4), this model's is (6,4)");
    c = tiny, c.heads = 1;
    refused(&c, "heads=2, this one heads=1");
}

static void paths_that_are_no_file_are_refused(void **state)
{
    (void)state;
    struct model_config c;
    unlink(path);
    refused(&tiny, strerror(ENOENT));
    assert_int_equal(checkpoint_config(path, &c), -1);
    assert_int_equal(mkfifo(path, 0600), 0); // must not wait for a writer
    refused(&tiny, path);
    unlink(path);
    assert_int_equal(mkdir(path, 0700), 0);
    refused(&tiny, path);
    rmdir(path);
}

static void bad_llmc_models_are_refused(void **state)
{
    (void)state;
    float p[MAX_PARAMS];
    static struct bytes good, bad;
    numbers(p, model_nparams(&tiny), 5);
    build_llmc(&tiny, 3, 128, p);
    load(&good);
    static const struct {
        int at, value;
        const char *says;
    } headers[] = {
        {0, 20240520, "not a safetensors file"},
        {1, 1, "version 1, must be 3 (fp32) or 5"},
        {1, 5, "but its header says"},
        {2, 0, "context is 0"},
        {2, 4, "but its header says"},
        {3, -5, "vocab_size is -5"},
        {3, 4, "vocab_size=4"},
        {4, INT32_MAX, "layers is 2147483647"},
        {5, 3, "heads 3 does not divide channels 4"},
        {5, 4, "heads=4"},
        {6, INT32_MIN, "channels is -2147483648"},
        {7, 4, "padded to 4"},
        {7, INT32_MAX, "padded to 2147483647"},
        {7, 127, "but its header says"},
    };
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
        bad = good;
        memcpy(bad.at + 4 * headers[i].at, &headers[i].value, 4);
        store(&bad);
        refused(&tiny, headers[i].says);
    }
    for (size_t n = 0; n < good.n; n += 61) {
        bad = good;
        bad.n = n;
        store(&bad);
        refused(&tiny, path);
    }
    bad = good;
    append(&bad, "....", 4);
    store(&bad);
    refused(&tiny, "but its header says");
    p[model_nparams(&tiny) - 2] = NAN;
    build_llmc(&tiny, 3, 128, p);
    refused(&tiny, "ln_f.bias: element 2 is nan");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_headers_are_refused),
        cmocka_unit_test(bad_lengths_are_refused),
        cmocka_unit_test(bad_numbers_are_refused),
        cmocka_unit_test(other_models_are_refused),
        cmocka_unit_test(paths_that_are_no_file_are_refused),
        cmocka_unit_test(bad_llmc_models_are_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
