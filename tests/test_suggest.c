// test_suggest.c - suggestions for a wrong word: the nearest key, or our word
// for a term of other projects.

#include "config/suggest.h"

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
    assert_int_equal(set("batch_size", "5"), -1);
    assert_says("nearest: batch;");
    assert_int_equal(set("--lr", "5"), -1);
    assert_says("nearest: lr;");
    assert_int_equal(set("max_steps", "5"), -1);
    assert_says("nearest: steps;");
    assert_int_equal(set("", "5"), -1);
    assert_int_equal(set("sync", "rign"), -1);
    assert_says("try: sync=ring");
    assert_int_equal(suggest_distance("warmup", "warmpu"), 1);
    assert_int_equal(set("STEPS", "5"), -1);
    assert_says("nearest: steps;");
    assert_int_equal(suggest_distance("", "abc"), 3);
    assert_int_equal(suggest_distance("kitten", "sitting"), 3);
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
        {"dpss", "try: sync=dps"}, // mistyped
    };
    for (size_t i = 0; i < sizeof sync / sizeof *sync; i++) {
        assert_int_equal(set("sync", sync[i][0]), -1);
        assert_says(sync[i][1]);
    }
    assert_int_equal(set("pipeline", "PipeDream"), -1);
    assert_says("try: pipeline=1f1b");
    assert_int_equal(set("world_size", "2"), -1);
    assert_says("unknown key world_size; try: workers=;");
    assert_null(suggest_ours("sync", ""));
    assert_null(suggest_ours("sync", "dd"));
    assert_null(suggest_ours("sync", "ddpp"));
    struct suggest_row row;
    for (int i = 0; suggest_row(i, &row); i++) {
        char words[128], *rest;
        struct run r;
        config_defaults(&r);
        snprintf(words, sizeof words, "%s", row.ours);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_names_find_their_neighbour),
        cmocka_unit_test(terms_of_the_field_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
