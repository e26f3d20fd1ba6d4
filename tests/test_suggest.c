// test_suggest.c - suggestions for a wrong word: the nearest key, or our word
// for a term of other projects.

#include "config/suggest.h"

#include "base/file.h"
#include "config/config.h"
#include "config/keys.h"

#include "tests/fresh_run.h"

static int set(const char *key, const char *value)
{
    struct run r = fresh();
    return config_set(&r, key, value);
}

static void unknown_names_find_their_neighbour(void **state)
{
    (void)state;
    assert_int_equal(set("stpes", "5"), -1);
    assert_says("nearest: steps;");
    assert_int_equal(set("batches", "5"), -1);
    assert_says("nearest: batch;");
    assert_int_equal(set("--lr", "5"), -1);
    assert_says("nearest: lr;");
    assert_int_equal(set("extra_steps", "5"), -1);
    assert_says("nearest: steps;");
    assert_int_equal(set("wght_decay", "5"), -1);
    assert_says("nearest: weight_decay;");
    assert_int_equal(set("", "5"), -1);
    assert_int_equal(set("sync", "rign"), -1);
    assert_says("try: sync=ring");
    assert_int_equal(suggest_distance("warmup", "warmpu"), 1);
    assert_int_equal(set("STEPS", "5"), -1);
    assert_says("nearest: steps;");
    assert_int_equal(suggest_distance("", "abc"), 3);
    assert_int_equal(suggest_distance("kitten", "sitting"), 3);
}

// A word that is near to none gets no suggestion.
static void a_far_word_has_no_neighbour(void **state)
{
    (void)state;
    static const char *const words[] = {"foo", "qqqqqqqqqqqq", "x", "zebra"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        assert_int_equal(set(words[i], "5"), -1);
        assert_says("unknown key");
        assert_null(strstr(fail_message(), "nearest"));
        assert_int_equal(set("optimizer", words[i]), -1);
        assert_says("not one of adamw, sgd");
        assert_null(strstr(fail_message(), "try"));
    }
    assert_null(suggest_nearest("a", NULL, 0));
}

// For a term of other projects, the message names our settings, and these
// exist.
static void terms_of_the_field_are_known(void **state)
{
    (void)state;
    static const char *const sync[][2] = {
        {"ddp", "try: sync=ring, or sync=allreduce"},
        {"DDP", "try: sync=ring, or sync=allreduce"},
        {"horovod", "try: sync=ring"},
        {"fsdp", "try: sync=zero shard=3"},
        {"ZeRO-3", "try: sync=zero shard=3"},
        {"zero_2", "try: sync=zero shard=2"},
        {"deepspeed", "try: sync=zero shard=2"},
        {"diloco", "try: sync=outer every="},
        {"gpipe", "try: sync=ring mesh=pp2 pipeline=gpipe"},
        {"ps", "try: sync=sps, or sync=dps"},
        {"megatron", "try: sync=ring mesh=tp2"},
        {"adasum", "docs/limits.md"},
        {"usp", "try: sync=ring mesh=cp2,up2"},
        {"dpss", "try: sync=dps"}, // mistyped
    };
    static const char *const keys[][2] = {
        {"world_size", "unknown key world_size; try: workers=;"},
        {"dtype", "try: precision=;"},
        {"max_iters", "try: steps=;"},
        {"train.max_iters", "unknown key train.max_iters; try: steps=;"},
        {"--block-size", "try: context=;"},
        {"fp16", "try: precision=;"},
        {"nnodes", "try: hosts=;"},
        {"tp", "try: mesh=;"},
        {"num_workers", "docs/limits.md"},
        {"cpu_offload", "try: offload=;"},
        {"offload_param", "try: sync=zero shard=3 offload=disk;"},
        {"expert_parallel_size", "docs/limits.md"},
    };
    for (size_t i = 0; i < sizeof sync / sizeof *sync; i++) {
        assert_int_equal(set("sync", sync[i][0]), -1);
        assert_says(sync[i][1]);
    }
    assert_int_equal(set("pipeline", "PipeDream"), -1);
    assert_says("try: pipeline=1f1b");
    assert_int_equal(set("offload", "host"), -1);
    assert_says("try: sync=zero device=cuda");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        assert_int_equal(set(keys[i][0], "bf16"), -1);
        assert_says(keys[i][1]);
    }
    assert_null(suggest_ours("sync", ""));
    assert_null(suggest_ours("sync", "dd"));
    assert_null(suggest_ours("sync", "ddpp"));
    for (const struct term *row = suggest_terms; row->words; row++) {
        char words[128], *rest;
        struct run r;
        config_defaults(&r);
        snprintf(words, sizeof words, "%s", row->ours);
        for (char *w = strtok_r(words, " ,", &rest); w;
             w = strtok_r(NULL, " ,", &rest)) {
            char *equals = strchr(w, '=');
            if (!equals)
                continue; // "or"
            *equals = '\0';
            assert_non_null(key_find(&run_keys, w));
            if (equals[1])
                assert_int_equal(config_set(&r, w, equals + 1), 0);
        }
    }
}

// Each word of each row is refused with what the row says. So no row hides a
// word that Lockstep itself understands, and none is never found.
static void every_term_is_told(void **state)
{
    (void)state;
    for (const struct term *row = suggest_terms; row->words; row++) {
        char words[256], *rest;
        snprintf(words, sizeof words, "%s", row->words);
        for (char *w = strtok_r(words, " ", &rest); w;
             w = strtok_r(NULL, " ", &rest)) {
            assert_int_equal(*row->key ? set(row->key, w) : set(w, "1"), -1);
            assert_says(*row->ours ? row->ours : SUGGEST_NONE);
        }
    }
}

// The row of a page: | `dtype`, `torch_dtype` | `precision=` |
static void page_row(const struct term *row, char *out, size_t size)
{
    const char *equals = *row->key ? "=" : "";
    size_t at = (size_t)snprintf(out, size, "| ");
    for (const char *w = row->words; *w; w += *w == ' ') {
        size_t n = strcspn(w, " ");
        at += (size_t)snprintf(out + at, size - at, "%s`%s%s%.*s`",
                               w == row->words ? "" : ", ", row->key, equals,
                               (int)n, w);
        w += n;
    }
    snprintf(out + at, size - at,
             *row->ours ? " | `%s` |\n" : " | none: [limits.md](limits.md) |\n",
             row->ours);
}

// The tables of docs/names.md below "Values" have the rows of terms.c and no
// others, in their order.
static void the_page_has_every_term(void **state)
{
    (void)state;
    char *page = file_read(LOCKSTEP_SOURCE "/docs/names.md", 1 << 20);
    char want[1024];
    assert_non_null(page);
    const char *at = strstr(page, "## Values that");
    assert_non_null(at);
    for (const struct term *row = suggest_terms; row->words; row++) {
        page_row(row, want, sizeof want);
        at = strstr(at, "\n| `");
        if (!at || strncmp(++at, want, strlen(want)))
            wrong("docs/names.md must have this row: %s", want);
    }
    assert_null(strstr(at, "\n| `"));
    mem_free(page);
}

// Whether the text has one of the words, in any spelling.
static bool names_one(const char *text, const char *words)
{
    char one[256], *rest;
    snprintf(one, sizeof one, "%s", words);
    for (char *w = strtok_r(one, " ", &rest); w; w = strtok_r(NULL, " ", &rest))
        if (strcasestr(text, w))
            return true;
    return false;
}

// An error sends the reader of a name for which there is nothing to this page.
static void the_page_of_limits_explains_what_is_missing(void **state)
{
    (void)state;
    char *page = file_read(LOCKSTEP_SOURCE "/docs/limits.md", 1 << 20);
    assert_non_null(page);
    for (const struct term *row = suggest_terms; row->words; row++)
        if (!*row->ours && !names_one(page, row->words))
            wrong("docs/limits.md does not name %s", row->words);
    mem_free(page);
}

// The next `word` of a line of a page: copies it, and moves *at behind it.
// False if there is none before `end`.
static bool next_word(const char **at, const char *end, char out[64])
{
    const char *from = memchr(*at, '`', (size_t)(end - *at));
    const char *to = from ? strchr(from + 1, '`') : NULL;
    if (!to || to > end)
        return false;
    snprintf(out, 64, "%.*s", (int)(to - from - 1), from + 1);
    *at = to + 1;
    return true;
}

// Each row of "Old names": | `old=`, `older=` | `new=` or `another=` |
static void old_names_have_the_successors_of_the_page(void **state)
{
    (void)state;
    char *page = file_read(LOCKSTEP_SOURCE "/docs/glossary.md", 1 << 20);
    char old[64], now[64];
    int rows = 0;
    assert_non_null(page);
    const char *row = strstr(page, "**Old names**");
    assert_non_null(row);
    while ((row = strstr(row, "\n| `"))) {
        const char *at = row += 3, *middle = strstr(row, " | ");
        const char *end = strchr(row, '\n');
        assert_true(middle && middle < end);
        for (; next_word(&at, middle, old); rows++) {
            const char *to = middle;
            old[strcspn(old, "=")] = '\0';
            assert_int_equal(set(old, "1"), -1);
            while (next_word(&to, end, now))
                if (strchr(now, '='))
                    assert_says(now);
        }
    }
    assert_true(rows > 0);
    mem_free(page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_names_find_their_neighbour),
        cmocka_unit_test(a_far_word_has_no_neighbour),
        cmocka_unit_test(terms_of_the_field_are_known),
        cmocka_unit_test(every_term_is_told),
        cmocka_unit_test(the_page_has_every_term),
        cmocka_unit_test(the_page_of_limits_explains_what_is_missing),
        cmocka_unit_test(old_names_have_the_successors_of_the_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
