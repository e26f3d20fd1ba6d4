// test_wordpiece.c - compares our encoding of BERT's kind with the golden file,
// which tests/oracle/bert_wordpiece.py wrote, and decodes it.

#include "data/wordpiece.h"

#include "base/base.h"
#include "data/symbols.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/test.h"

static const char small[] = "tests/golden/small_vocab.txt";

static struct symbols open_vocab(void)
{
    struct symbols s;
    assert_int_equal(symbols_vocab(&s, small), 0);
    assert_int_equal(s.kind, SYMBOLS_PIECES);
    return s;
}

static size_t from_hex(const char *hex, char *out)
{
    size_t n = 0;
    for (; hex[0] && hex[0] != ' ' && hex[0] != '\n'; hex += 2) {
        char pair[3] = {hex[0], hex[1], 0};
        out[n++] = (char)strtoul(pair, NULL, 16);
    }
    return n;
}

// The golden file has lines "hex id id id".
static void encodings_equal_the_golden_file(void **state)
{
    (void)state;
    struct symbols s = open_vocab();
    FILE *f = fopen("tests/golden/small_pieces.txt", "re");
    assert_non_null(f);
    static char line[4096], text[1024];
    static uint16_t tokens[1024];
    int lines = 0;
    for (; fgets(line, sizeof line, f); lines++) {
        size_t n = from_hex(line, text);
        char *at = line + 2 * n;
        long count = symbols_encode(&s, text, n, tokens), want = 0;
        assert_true(count >= 0 && (size_t)count <= n);
        for (char *end; *at == ' '; at = end, want++) {
            assert_true(want < count);
            assert_int_equal(tokens[want], strtoul(at, &end, 10));
        }
        assert_int_equal(count, want);
    }
    assert_true(lines > 200);
    fclose(f);
    symbols_close(&s);
}

static void decoded(const struct symbols *s, const char *text, const char *want)
{
    uint16_t tokens[64];
    char out[1024];
    size_t n = 0;
    long count = symbols_encode(s, text, strlen(text), tokens);
    for (long i = 0; i < count; i++)
        n += symbols_decode(s, tokens[i], out + n);
    out[n] = '\0';
    assert_string_equal(out, want);
}

static void words_are_put_together_again(void **state)
{
    (void)state;
    struct symbols s = open_vocab(), again;
    decoded(&s, "The  UNAFFABLE word,\nno!", " the unaffable word, no!");
    decoded(&s, "\xe6\x88\x91 \xe6\x98\xaf the",
            "\xe6\x88\x91\xe6\x98\xaf the");
    decoded(&s, "the \xff qqq", " the [UNK]");
    char *saved = symbols_save(&s);
    assert_int_equal(symbols_load(&again, saved), 0);
    assert_int_equal(again.n, s.n);
    decoded(&again, "unaffable", " unaffable");
    free(saved);
    symbols_close(&again);
    symbols_close(&s);
}

// A vocabulary with capital letters leaves the text as it is.
static void capitals_are_kept_if_the_vocabulary_has_some(void **state)
{
    (void)state;
    static const char text[] = "[UNK]\nThe\nthe\n";
    struct wordpiece *w;
    uint16_t tokens[16];
    assert_int_equal(wordpiece_open(&w, "x", text, sizeof text - 1), 0);
    assert_int_equal(wordpiece_encode(w, "The the THE", 11, tokens), 3);
    assert_int_equal(tokens[0], 1);
    assert_int_equal(tokens[1], 2);
    assert_int_equal(tokens[2], 0);
    wordpiece_close(&w);
}

static void refused(const char *text, size_t n, const char *says)
{
    struct wordpiece *w;
    assert_int_equal(wordpiece_open(&w, "x", text, n), -1);
    assert_non_null(strstr(fail_message(), says));
}

static void bad_vocabularies_are_refused(void **state)
{
    (void)state;
    static char long_line[300] = "[UNK]\n";
    memset(long_line + 6, 'a', 250);
    refused("[UNK]\na\nb\na\n", 12, "lines 2 and 4 have the same token");
    refused("[UNK]\n\na\n", 9, "line 2: 0 bytes");
    refused("[UNK]\na\0b\n", 10, "line 2 has a zero byte");
    refused("a\nb\n", 4, "no line [UNK]");
    refused(long_line, 256, "line 2: 250 bytes");
    assert_false(wordpiece_is("a [UNK]\n", 8));
    assert_true(wordpiece_is("a\r\n[UNK]", 8));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encodings_equal_the_golden_file),
        cmocka_unit_test(words_are_put_together_again),
        cmocka_unit_test(capitals_are_kept_if_the_vocabulary_has_some),
        cmocka_unit_test(bad_vocabularies_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
