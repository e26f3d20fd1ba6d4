// test_bpe.c - compares our GPT-2 encoding with that of other encoders, and
// decodes it.

#include "data/bpe.h"

#include "base/base.h"
#include "base/rng.h"
#include "data/symbols.h"

#include <stdlib.h>
#include <unistd.h>

#include "tests/test.h"

// Like cmocka's fail_msg(), which cannot be used here: it calls cmocka's
// fail(), and ours has the same name.
#define wrong(...)                                                             \
    (print_error(__VA_ARGS__), print_error("\n"), _fail(__FILE__, __LINE__))

static const char small[] = "tests/golden/small.bpe";

static struct symbols open_vocab(const char *path)
{
    struct symbols s;
    if (symbols_vocab(&s, path))
        wrong("%s", fail_message());
    return s;
}

// Encodes n bytes and decodes them. The bytes must be the same.
static void there_and_back(const struct symbols *s, const char *text, size_t n)
{
    uint16_t *tokens = malloc(n * sizeof *tokens + 1);
    long count = symbols_encode(s, text, n, tokens);
    assert_true(count >= 0 && (size_t)count <= n);
    size_t at = 0;
    for (long i = 0; i < count; i++) {
        char part[256];
        size_t len = symbols_decode(s, tokens[i], part);
        assert_true(len > 0 && at + len <= n);
        assert_memory_equal(part, text + at, len);
        at += len;
    }
    assert_int_equal(at, n);
    free(tokens);
}

static void random_bytes_survive_a_round_trip(void **state)
{
    (void)state;
    struct symbols s = open_vocab(small);
    char text[300];
    for (uint64_t round = 0; round < 2000; round++) {
        size_t n = rng_below(round, 0, sizeof text);
        for (size_t i = 0; i < n; i++)
            text[i] = (char)rng_u64(round, i + 1);
        there_and_back(&s, text, n);
    }
    symbols_close(&s);
}

static size_t put_code(uint32_t c, char *out)
{
    if (c < 0x80)
        return out[0] = (char)c, 1;
    if (c < 0x800)
        return out[0] = (char)(0xc0 | c >> 6), out[1] = (char)(0x80 | (c & 63)),
               2;
    if (c < 0x10000)
        return out[0] = (char)(0xe0 | c >> 12),
               out[1] = (char)(0x80 | (c >> 6 & 63)),
               out[2] = (char)(0x80 | (c & 63)), 3;
    return out[0] = (char)(0xf0 | c >> 18),
           out[1] = (char)(0x80 | (c >> 12 & 63)),
           out[2] = (char)(0x80 | (c >> 6 & 63)),
           out[3] = (char)(0x80 | (c & 63)), 4;
}

static void random_utf8_survives_a_round_trip(void **state)
{
    (void)state;
    struct symbols s = open_vocab(small);
    static const uint32_t below[] = {0x80, 0x250, 0x3100, 0x110000};
    for (uint64_t round = 0; round < 2000; round++) {
        char text[400];
        size_t n = 0, count = rng_below(round, 0, 100);
        for (size_t i = 0; i < count; i++) {
            uint32_t range = below[rng_below(round, 2 * i + 1, 4)];
            n += put_code((uint32_t)rng_below(round, 2 * i + 2, range),
                          text + n);
        }
        there_and_back(&s, text, n);
    }
    symbols_close(&s);
}

// Puts each code point after a letter and after a blank: all code points below
// U+3400, and every 97th of the others.
static void code_points_survive_a_round_trip(void **state)
{
    (void)state;
    struct symbols s = open_vocab(small);
    for (uint32_t c = 0; c < 0x110000; c += c < 0x3400 ? 1 : 97) {
        char text[16] = "a";
        size_t n = 1 + put_code(c, text + 1);
        text[n++] = ' ';
        n += put_code(c, text + n);
        there_and_back(&s, text, n);
    }
    symbols_close(&s);
}

// ---- compared with other encoders

static size_t from_hex(const char *hex, const char *end, char *out)
{
    size_t n = 0;
    for (; hex < end; hex += 2) {
        char pair[3] = {hex[0], hex[1], 0};
        out[n++] = (char)strtoul(pair, NULL, 16);
    }
    return n;
}

// The golden file has lines "hex id id id". tests/oracle/gpt2_bpe.py wrote it.
static void encodings_equal_the_golden_file(void **state)
{
    (void)state;
    struct symbols s = open_vocab(small);
    FILE *f = fopen("tests/golden/small_bpe.txt", "re");
    assert_non_null(f);
    static char line[16384], text[8192];
    static uint16_t tokens[8192];
    int lines = 0;
    for (; fgets(line, sizeof line, f); lines++) {
        char *at = line + strcspn(line, " \n");
        size_t n = from_hex(line, at, text);
        long count = symbols_encode(&s, text, n, tokens), want = 0;
        for (char *end; *at == ' '; at = end) {
            unsigned long id = strtoul(at, &end, 10);
            if (want >= count || tokens[want] != id)
                wrong("line %d: token %ld is not %lu", lines + 1, want, id);
            want++;
        }
        assert_int_equal(count, want);
    }
    assert_true(lines > 100);
    fclose(f);
    symbols_close(&s);
}

// The loop of OpenAI's encoder: joins the earliest pair of the table everywhere
// in the word, then begins again.
static size_t by_rounds(const struct bpe *b, const unsigned char *s, size_t n,
                        uint32_t *word)
{
    for (size_t i = 0; i < n; i++)
        word[i] = bpe_byte(b, s[i]);
    for (;;) {
        uint32_t best = BPE_NONE;
        for (size_t i = 0; i + 1 < n; i++) {
            uint32_t token = bpe_join(b, word[i], word[i + 1]);
            best = token < best ? token : best;
        }
        if (best == BPE_NONE)
            return n;
        size_t kept = 0;
        for (size_t i = 0; i < n; kept++) {
            bool pair = i + 1 < n && bpe_join(b, word[i], word[i + 1]) == best;
            word[kept] = pair ? best : word[i];
            i += pair ? 2 : 1;
        }
        n = kept;
    }
}

static void the_heap_encodes_as_openais_loop(void **state)
{
    (void)state;
    struct symbols s = open_vocab(small);
    for (uint64_t round = 0; round < 1000; round++) {
        unsigned char word[200];
        uint32_t want[200];
        uint16_t got[200];
        size_t n = 1 + rng_below(round, 0, sizeof word - 1);
        for (size_t i = 0; i < n; i++)
            word[i] = (unsigned char)"aeinorst"[rng_below(round, i + 1, 8)];
        assert_int_equal(bpe_word(word, n), n);
        size_t count = by_rounds(s.bpe, word, n, want);
        assert_int_equal(bpe_encode(s.bpe, (char *)word, n, got), count);
        for (size_t i = 0; i < count; i++)
            assert_int_equal(got[i], want[i]);
    }
    symbols_close(&s);
}

static void long_words_survive_a_round_trip(void **state)
{
    (void)state;
    struct symbols s = open_vocab(small);
    size_t n = 1 << 18;
    char *text = malloc(n);
    memset(text, ' ', n);
    there_and_back(&s, text, n);
    for (size_t i = 0; i < n; i++)
        text[i] = "etaoin"[rng_below(7, i, 6)];
    there_and_back(&s, text, n);
    free(text);
    symbols_close(&s);
}

// The path of GPT-2's own table, or NULL if it is not there. The project does
// not contain it.
static const char *real_vocab(char path[1024])
{
    const char *shared = getenv("LOCKSTEP_SHARED");
    snprintf(path, 1024, "%s/data/gpt2/vocab.bpe",
             shared ? shared : "../shared");
    return access(path, R_OK) == 0 ? path : NULL;
}

static void encodings_equal_gpt2s(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint16_t token[12];
    } known[] = {
        {"Hello world", {15496, 995}},
        {"hello world", {31373, 995}},
        {"Hello, my dog is cute", {15496, 11, 616, 3290, 318, 13779}},
        {"Hello, I'm a language model,",
         {15496, 11, 314, 1101, 257, 3303, 2746, 11}},
        {"The quick brown fox jumps over the lazy dog.",
         {464, 2068, 7586, 21831, 18045, 625, 262, 16931, 3290, 13}},
        {"\n", {198}},
        {" ", {220}},
    };
    char path[1024];
    if (!real_vocab(path)) {
        print_message("no %s: known encodings are not tested\n", path);
        skip();
    }
    struct symbols s = open_vocab(path);
    assert_int_equal(s.n, 50257);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        uint16_t got[64];
        long n = symbols_encode(&s, known[i].text, strlen(known[i].text), got);
        for (long k = 0; k < n; k++)
            assert_int_equal(got[k], known[i].token[k]);
        assert_true(n == 12 || known[i].token[n] == 0);
    }
    char end[256];
    assert_int_equal(symbols_decode(&s, 50256, end), 13);
    assert_memory_equal(end, "<|endoftext|>", 13);
    assert_int_equal(symbols_decode(&s, 50257, end), 0);
    assert_int_equal(symbols_decode(&s, -1, end), 0);
    symbols_close(&s);
}

// ---- the table of merges

static void tables_can_be_saved_and_loaded(void **state)
{
    (void)state;
    struct symbols s = open_vocab(small), again;
    char *saved = symbols_save(&s);
    assert_non_null(saved);
    assert_int_equal(symbols_load(&again, saved), 0);
    assert_int_equal(again.n, s.n);
    char *twice = symbols_save(&again);
    assert_string_equal(saved, twice);
    there_and_back(&again, saved, strlen(saved));
    free(saved);
    free(twice);
    symbols_close(&s);
    symbols_close(&again);
}

static void bad_tables_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"", "does not begin"},
        {"a b\n", "does not begin"},
        {"#version", "does not begin"},
        {"#version: 0.2", "does not begin"},
        {"#version: 0.2\na b", "v:2: the last line has no end"},
        {"#version: 0.2\na", "v:2: the last line has no end"},
        {"#version: 0.2\nab\n", "v:2: want two tokens"},
        {"#version: 0.2\n\n", "v:2: want two tokens"},
        {"#version: 0.2\n b\n", "v:2: want two tokens"},
        {"#version: 0.2\na \n", "v:2: want two tokens"},
        {"#version: 0.2\na b c\n", "v:2: want two tokens"},
        {"#version: 0.2\na b\r\n", "v:2: U+000D is not a letter"},
        {"#version: 0.2\na b\n\xe4 c\n", "v:3: U+DCE4 is not a letter"},
        {"#version: 0.2\na \xe6\x97\xa5\n", "v:2: U+65E5 is not a letter"},
        {"#version: 0.2\na b\nabc d\n", "v:3: a half of 3 bytes is not"},
        {"#version: 0.2\na b\na b\n", "v:3: makes token 256 a second time"},
        {"#version: 0.2\na b\nb c\nab c\na bc\n",
         "v:5: makes token 258 a second time"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct bpe *b = NULL;
        assert_int_equal(bpe_open(&b, "v", bad[i].text, strlen(bad[i].text)),
                         -1);
        assert_null(b);
        if (!strstr(fail_message(), bad[i].says))
            wrong("%zu: '%s' does not say '%s'", i, fail_message(),
                  bad[i].says);
    }
}

// Each of the lines "a a", "aa aa", ... makes a token twice as long as the one
// before.
static void too_long_tokens_are_refused(void **state)
{
    (void)state;
    char text[4096] = "#version: 0.2\n", as[1024];
    memset(as, 'a', sizeof as);
    for (int n = 1; n <= 256; n *= 2)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%.*s %.*s\n",
                 n, as, n, as);
    struct bpe *b = NULL;
    assert_int_equal(bpe_open(&b, "v", text, strlen(text)), -1);
    assert_non_null(strstr(fail_message(), "v:10: a token of 512 bytes"));
}

static void too_many_merges_are_refused(void **state)
{
    (void)state;
    size_t n = 14 + 70000 * 4;
    char *text = malloc(n + 1);
    strcpy(text, "#version: 0.2\n");
    for (size_t i = 14; i < n; i += 4)
        memcpy(text + i, "a b\n", 4);
    struct bpe *b = NULL;
    assert_int_equal(bpe_open(&b, "v", text, n), -1);
    assert_non_null(strstr(fail_message(), "more than the 65279 merges"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_bytes_survive_a_round_trip),
        cmocka_unit_test(random_utf8_survives_a_round_trip),
        cmocka_unit_test(code_points_survive_a_round_trip),
        cmocka_unit_test(encodings_equal_the_golden_file),
        cmocka_unit_test(the_heap_encodes_as_openais_loop),
        cmocka_unit_test(long_words_survive_a_round_trip),
        cmocka_unit_test(encodings_equal_gpt2s),
        cmocka_unit_test(tables_can_be_saved_and_loaded),
        cmocka_unit_test(bad_tables_are_refused),
        cmocka_unit_test(too_long_tokens_are_refused),
        cmocka_unit_test(too_many_merges_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
