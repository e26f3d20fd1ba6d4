// test_data_source.c - the sources of tokens: texts and their symbols, shards,
// and the default text. Bad input is refused.

#include "data/data.h"

#include "base/base.h"
#include "data/headers.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/data_files.h"

// ---- symbols and sources

static void hash_tells_texts_apart(void **state)
{
    (void)state;
    static const char *const texts[] = {"abcabcabcabcabcabcabcabcab",
                                        "abcabcabcabcabcabcabcabcac",
                                        "xyzxyzxyzxyzxyzxyzxyzxyzxy"};
    uint64_t hash[4];
    for (int i = 0; i < 4; i++) {
        struct data_config c = config(put("text", texts[i % 3], 26));
        c.vocab = "chars";
        c.world = 2;
        c.rank = i == 3; // another rank: the same data
        c.batch = 1;
        struct data *d = opened(&c);
        hash[i] = info_of(d).hash;
        data_close(&d);
    }
    assert_int_equal(hash[0], hash[3]);
    assert_int_not_equal(hash[0], hash[1]);
    assert_int_not_equal(hash[0], hash[2]); // the same tokens, other characters
    assert_int_not_equal(hash[1], hash[2]);
}

static void same_text(const struct data *d, const int32_t *x, const char *want,
                      size_t n)
{
    size_t at = 0;
    for (int i = 0; at < n; i++) {
        char part[256];
        size_t len = data_decode(d, x[i], part);
        assert_true(len > 0);
        for (size_t k = 0; k < len && at < n; k++)
            assert_int_equal(part[k], want[at++]);
    }
}

// Symbols are sorted by code point. A byte that is not UTF-8 is a symbol of its
// own.
static void characters_are_symbols(void **state)
{
    (void)state;
    static const char text[] = "zäé\xff日a\nzäé\xff日a\nzäé\xff日a\n";
    struct data_config c = config(put("text", text, sizeof text - 1));
    c.vocab = "chars";
    struct data *d = opened(&c), *again;
    assert_int_equal(info_of(d).vocab_size, 7);
    assert_int_equal(info_of(d).train_tokens, 21);
    int32_t x[32], y[2 * T];
    static const int32_t want[] = {2, 3, 4, 6, 5, 1, 0};
    assert_int_equal(data_encode(d, text, 11, x, 32), 7);
    assert_memory_equal(x, want, sizeof want);
    assert_int_equal(data_encode(d, text, 11, x, 6), -1);
    assert_int_equal(data_encode(d, "b", 1, x, 6), -1);
    assert_non_null(strstr(fail_message(), "U+0062"));
    assert_int_equal(data_encode(d, "", 0, x, 0), 0);
    same_text(d, want, text, 11);

    char *saved = data_symbols_save(d);
    assert_int_equal(data_symbols_load(&again, saved), 0);
    assert_int_equal(info_of(again).vocab_size, 7);
    same_text(again, want, text, 11);
    assert_int_equal(data_next(again, x, y), -1);
    assert_int_equal(data_val(again, 0, x, y), 0);
    free(saved);
    data_close(&again);
    data_close(&d);
}

static void text_is_encoded_with_a_vocab(void **state)
{
    (void)state;
    static const char text[] =
        "int main(void)\n{\n    return fail(\"\xff\");\n}\n"
        "static int run(const struct data *d, size_t n)";
    struct data_config c = config(put("text", text, sizeof text - 1));
    c.vocab = "tests/golden/small.bpe";
    c.batch = 1;
    c.tokens = 4;
    struct data *d = opened(&c);
    assert_int_equal(info_of(d).vocab_size, 256 + 600 + 1);
    assert_true(info_of(d).train_tokens < sizeof text / 2);
    int32_t x[sizeof text];
    assert_true(data_encode(d, text, sizeof text - 1, x, sizeof text) > 0);
    same_text(d, x, text, sizeof text - 1);
    data_close(&d);
}

static void bytes_are_symbols(void **state)
{
    (void)state;
    char text[100];
    for (int i = 0; i < 100; i++)
        text[i] = (char)(i * 5);
    struct data_config c = config(put("text", text, 100));
    struct data *d = opened(&c);
    assert_int_equal(info_of(d).vocab_size, 256);
    assert_int_equal(info_of(d).train_tokens, 100);
    int32_t x[100];
    assert_int_equal(data_encode(d, text, 100, x, 100), 100);
    same_text(d, x, text, 100);
    data_close(&d);
}

static void shards_are_read(void **state)
{
    (void)state;
    struct data_config c = config(put_shard("a.bin", MAGIC, 1, 777, 777));
    struct data *d = opened(&c);
    assert_int_equal(info_of(d).train_tokens, 777);
    assert_int_equal(info_of(d).vocab_size, 100);
    int32_t x[2];
    assert_int_equal(data_encode(d, "x", 1, x, 2), -1);
    char *saved = data_symbols_save(d), out[256];
    assert_string_equal(saved, "symbols none 100\n");
    assert_int_equal(data_decode(d, 42, out), 4);
    assert_memory_equal(out, "<42>", 4);
    free(saved);
    data_close(&d);
    c.path = put_shard("named", MAGIC, 1, 777, 777); // known by its magic
    d = opened(&c);
    assert_int_equal(info_of(d).train_tokens, 777);
    data_close(&d);
}

static void headers_are_joined_in_order(void **state)
{
    (void)state;
    char path[64];
    snprintf(path, sizeof path, "%s/include", folder);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/include/m", folder);
    mkdir(path, 0777);
    put("include/z.h", "z\n", 2);
    put("include/m/b.h", "b1\nb2\n", 6);
    put("include/a.h", "a\n", 2);
    put("include/B.h", "B\n", 2);
    put("include/readme", "no\n", 3);
    put("include/x.hpp", "no\n", 3);
    snprintf(path, sizeof path, "%s/include", folder);
    struct headers h;
    assert_int_equal(headers_read(&h, path, 1000), 0);
    assert_int_equal(h.bytes, 12);
    assert_int_equal(h.files, 4);
    assert_memory_equal(h.text, "B\na\nb1\nb2\nz\n", 12);
    mem_free(h.text);
    assert_int_equal(headers_read(&h, path, 8), 0); // whole lines only
    assert_int_equal(h.bytes, 7);
    mem_free(h.text);
    snprintf(path, sizeof path, "%s/include/m/none", folder);
    assert_int_equal(headers_read(&h, path, 1000), -1);
    assert_non_null(strstr(fail_message(), "no C headers below"));
}

static void the_default_text_is_the_c_headers(void **state)
{
    (void)state;
    if (access("/usr/include/stdio.h", R_OK)) {
        print_message("no C headers: the default text is not tested\n");
        skip();
    }
    struct data_config c = config("");
    c.max_bytes = 100000;
    c.vocab = "chars";
    c.val_fraction = 0.1;
    struct data *d = opened(&c), *e = opened(&c);
    struct data_info info = info_of(d);
    assert_true(info.train_tokens + info.val_tokens <= 100000);
    assert_true(info.train_tokens > 10000);
    assert_int_equal(info.hash, info_of(e).hash);
    assert_non_null(strstr(info.source, "C headers"));
    data_close(&d);
    data_close(&e);
}

// ---- bad input

static void refused(const struct data_config *c, const char *says)
{
    struct data *d = NULL;
    if (data_open(&d, c) == 0)
        wrong("%s was accepted, want '%s'", c->path, says);
    assert_null(d);
    if (!strstr(fail_message(), says) || strchr(fail_message(), '\n'))
        wrong("'%s' does not say '%s'", fail_message(), says);
}

static void bad_files_are_refused(void **state)
{
    (void)state;
    struct data_config c = config("/nowhere/at/all");
    refused(&c, "data=/nowhere/at/all: No such file");
    c.path = put("empty", "", 0);
    refused(&c, "the file is empty");
    c.path = "/dev/null";
    refused(&c, "not a regular file");
    c.path = "/tmp";
    refused(&c, "a folder needs train.bin and val.bin");
    c.path = put("pipe", "x", 1);
    unlink(c.path);
    assert_int_equal(mkfifo(c.path, 0666), 0);
    refused(&c, "not a regular file"); // a pipe must not wait for its writer
    c.path = put("secret", "text", 4);
    chmod(c.path, 0);
    if (geteuid() != 0)
        refused(&c, "Permission denied; try: chmod");
    c = config(put("text", "some text", 9));
    c.vocab = "/nowhere/vocab.bpe";
    refused(&c, "vocab=/nowhere/vocab.bpe: No such file");
    c.vocab = "/tmp";
    refused(&c, "vocab=/tmp: a folder");
    c.vocab = c.path;
    refused(&c, "does not begin with \"#version\"");
}

static void too_short_texts_are_refused(void **state)
{
    (void)state;
    static const char text[200];
    struct data_config c = config(put("text", text, 16));
    refused(&c, "16 training tokens, too short: one step needs 17");
    c.path = put("text", text, 17);
    struct data *d = opened(&c);
    assert_int_equal(info_of(d).steps_per_epoch, 1);
    data_close(&d);
    c.accum = 2;
    refused(&c, "17 training tokens, too short: one step needs 33");
    c.world = 3;
    refused(&c, "one step needs 97");
    c = config(put("text", text, 100));
    c.val_fraction = 0.1;
    refused(&c, "10 validation tokens, too short: one batch needs 17");
    c.batch = c.tokens = c.accum = 1 << 30;
    refused(&c, "too short");
}

static void bad_shards_are_refused(void **state)
{
    (void)state;
    struct data_config c = config(put_shard("a.bin", MAGIC, 2, 500, 500));
    refused(&c, "shard of version 2, want 1");
    c.path = put_shard("a.bin", MAGIC, 1, 501, 500);
    refused(&c,
            "says 501 tokens, which need 2026 bytes, but the file has 2024");
    c.path = put_shard("a.bin", MAGIC, 1, -5, 500);
    refused(&c, "says -5 tokens");
    c.path = put_shard("a.bin", MAGIC, 1, 0, 0);
    refused(&c, "says 0 tokens");
    c.path = put_shard("a.bin", MAGIC, 1, INT32_MAX, 500);
    refused(&c, "says 2147483647 tokens");
    c.path = put_shard("a.bin", MAGIC + 1, 1, 500, 500);
    refused(&c, "wrong magic 20240521");
    c.path = put_shard("a.bin", 20240326, 3, 1024, 500);
    refused(&c, "magic 20240326 is a model of llm.c");
    int32_t magic = MAGIC;
    c.path = put("a.bin", &magic, 4);
    refused(&c, "4 bytes, shorter than the 1024");
    c.path = put("a.bin", "abc", 3);
    refused(&c, "an odd number, are not 16-bit tokens");
    c.path = put_counting("a.bin", 2000);
    c.vocab = "tests/golden/small.bpe";
    refused(&c, "has only 857 tokens");
}

static void bad_symbols_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "symbols",
        "symbols bytes",
        "symbols bytes 255\n",
        "symbols bytes 256",
        "symbols chars 2\n0041\n",
        "symbols chars 2\n0041\n0041\n",
        "symbols chars 1\nfffffff\n",
        "symbols chars 0\n",
        "symbols chars 99999\n",
        "symbols runes 3\n",
        "symbols bpe 300\n#version: 0.2\na b\n",
        "symbols bpe 258\n",
        "symbols none -1\n",
        "symbols none 5000000000\n",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct data *d = NULL;
        if (data_symbols_load(&d, bad[i]) == 0)
            wrong("'%s' was accepted", bad[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hash_tells_texts_apart),
        cmocka_unit_test(characters_are_symbols),
        cmocka_unit_test(text_is_encoded_with_a_vocab),
        cmocka_unit_test(bytes_are_symbols),
        cmocka_unit_test(shards_are_read),
        cmocka_unit_test(headers_are_joined_in_order),
        cmocka_unit_test(the_default_text_is_the_c_headers),
        cmocka_unit_test(bad_files_are_refused),
        cmocka_unit_test(too_short_texts_are_refused),
        cmocka_unit_test(bad_shards_are_refused),
        cmocka_unit_test(bad_symbols_are_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
