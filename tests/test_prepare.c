// test_prepare.c - a text that was prepared trains on the tokens that the text
// itself gives, whatever the pieces in which it was encoded.

#include "data/prepare_text.h"

#include "base/file.h"
#include "base/rng.h"

#include <string.h>

#include "tests/data_files.h"

enum { LENGTH = 3000 };

// A text of words, runs of blanks of several kinds, and letters of one to three
// bytes.
static const char *put_text(const char *name)
{
    static const char *const parts[] = {
        "the ",     "unaffable",    "  ",  "\n\n",  " \xe3\x80\x80 ",
        "\xc3\xa4", "\xe6\x88\x91", "'s ", "\t\n a"};
    static char text[LENGTH + 16];
    size_t n = 0;
    for (uint64_t i = 0; n < LENGTH; i++) {
        const char *part = parts[rng_below(7, i, 9)];
        memcpy(text + n, part, strlen(part));
        n += strlen(part);
    }
    return put(name, text, n);
}

static void same_batches(struct data *a, struct data *b)
{
    int32_t x[2 * T], y[2 * T], x2[2 * T], y2[2 * T];
    struct data_info one = info_of(a), two = info_of(b);
    assert_int_equal(one.train_tokens, two.train_tokens);
    assert_int_equal(one.val_tokens, two.val_tokens);
    assert_int_equal(one.vocab_size, two.vocab_size);
    for (int i = 0; i < 60; i++) {
        assert_int_equal(data_next(a, x, y), 0);
        assert_int_equal(data_next(b, x2, y2), 0);
        assert_memory_equal(x, x2, sizeof x);
        assert_memory_equal(y, y2, sizeof y);
    }
    for (size_t i = 0; data_val(a, i, x, y); i++) {
        assert_int_equal(data_val(b, i, x2, y2), 1);
        assert_memory_equal(y, y2, sizeof y);
    }
}

static void prepared_equals_text(const char *text, const char *vocab,
                                 size_t piece)
{
    char out[128], saved[256];
    struct prepared done;
    snprintf(out, sizeof out, "%s/%s-%zu", folder,
             strrchr(vocab, '.') ? strrchr(vocab, '.') + 1 : vocab, piece);
    struct prepare_config c = {.text = text,
                               .folder = out,
                               .vocab = vocab,
                               .val_fraction = 0.1,
                               .piece = piece};
    assert_int_equal(prepare_text(&c, &done), 0);
    struct data_config of_text = config(text), of_folder = config(out);
    of_text.val_fraction = of_folder.val_fraction = 0.1;
    of_text.vocab = vocab;
    struct data *a = opened(&of_text), *b = opened(&of_folder);
    same_batches(a, b);
    struct data_info info = info_of(b);
    assert_int_equal(done.train, info.train_tokens);
    assert_int_equal(done.symbols, info.vocab_size);
    assert_true(data_decode(b, 97, saved) > 0 || info.vocab_size <= 97);
    data_close(&a);
    data_close(&b);
    assert_int_equal(prepare_text(&c, &done), -1);
    assert_non_null(strstr(fail_message(), "is there already"));
}

static void pieces_change_nothing(void **state)
{
    (void)state;
    const char *text = put_text("words");
    static const size_t pieces[] = {1, 7, 1000, 0};
    for (int i = 0; i < 4; i++) {
        prepared_equals_text(text, "bytes", pieces[i]);
        prepared_equals_text(text, "chars", pieces[i]);
        prepared_equals_text(text, "tests/golden/small.bpe", pieces[i]);
        prepared_equals_text(text, "tests/golden/small_vocab.txt", pieces[i]);
    }
}

// Nothing is left in the folder that looks like a result.
static void refused(struct prepare_config c, const char *says)
{
    char out[64], train[80];
    struct prepared done;
    snprintf(out, sizeof out, "%s/refused", folder);
    snprintf(train, sizeof train, "%s/train.bin", out);
    c.folder = out;
    if (!c.vocab)
        c.vocab = "bytes";
    assert_int_equal(prepare_text(&c, &done), -1);
    assert_non_null(strstr(fail_message(), says));
    assert_int_not_equal(access(train, F_OK), 0);
    strcat(train, ".tmp");
    assert_int_not_equal(access(train, F_OK), 0);
}

static void bad_input_is_refused(void **state)
{
    (void)state;
    const char *shard = put_counting("tokens.bin", 100);
    const char *tiny = put("tiny", "a", 1);
    refused((struct prepare_config){.text = "/none", .val_fraction = 0.1},
            "No such file");
    refused((struct prepare_config){.text = shard, .val_fraction = 0.1},
            "has tokens already");
    refused((struct prepare_config){.text = tiny, .val_fraction = 1e-6},
            "leave none for train.bin");
    refused((struct prepare_config){.text = tiny,
                                    .vocab = "/none",
                                    .val_fraction = 0.5},
            "vocab=/none");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_change_nothing),
        cmocka_unit_test(bad_input_is_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
