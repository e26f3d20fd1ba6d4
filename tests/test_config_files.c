// test_config_files.c - reads settings from INI files and run.json, and writes
// them.

#include "config/keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/fresh_run.h"

static int ini(struct run *r, const char *text)
{
    *r = fresh();
    return config_ini(r, "x.ini", text, strlen(text));
}

static void ini_files_are_read(void **state)
{
    (void)state;
    struct run r;
    assert_int_equal(ini(&r, "# a comment\n[training]\nsteps = 7 ; seven\n\n"
                             "  batch=3\nwire=fp16\nsteps=8"),
                     0);
    assert_int_equal(r.steps, 8);
    assert_int_equal(r.batch, 3);
    assert_int_equal(r.settings.wire, DTYPE_F16);
    assert_int_equal(ini(&r, ""), 0);
    assert_int_equal(ini(&r, "steps=7\r\n"), 0);
    assert_int_equal(r.steps, 7);
    assert_int_equal(ini(&r, "steps=7\nstep=9\nbatch=0\n"), -1);
    assert_says("x.ini:2: unknown key step; nearest: steps");
    assert_int_equal(ini(&r, "\n\nhello\n"), -1);
    assert_says("x.ini:3: want key=value");
    assert_int_equal(ini(&r, "workers=2\nrank=1\n"), -1);
    assert_says("x.ini:2: rank= is no setting of a run; try: trainer rank=1");
    assert_int_equal(ini(&r, "model = nano # small\n"), -1);
    assert_says("after a value a comment begins with ;");
    assert_int_equal(ini(&r, "overlap=yes\n"), -1);
    assert_says("x.ini:1: overlap=yes: want 0 or 1");
    assert_int_equal(ini(&r, "[open\n"), -1);
    assert_int_equal(config_ini(&r, "x.ini", "a\0b", 3), -1);
    char lines[600];
    memset(lines, 'x', sizeof lines);
    memcpy(lines, "out=", 4);
    assert_int_equal(config_ini(&r, "x.ini", lines, sizeof lines), -1);
    assert_says("x.ini:1: a line of 600 characters");
    assert_int_equal(config_ini(&r, "x.ini", lines, 150), 0);
    assert_int_equal(strlen(r.out), 146);
}

static void later_words_win_over_earlier(void **state)
{
    (void)state;
    char path[] = "/tmp/lockstep_config_XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "steps=70\nbatch=5\n", 17), 17);
    close(fd);
    struct run r = fresh();
    const char *words[] = {"batch=4", path, "steps=200"};
    assert_int_equal(parse(&r, 3, words), 0);
    assert_int_equal(r.steps, 200);
    assert_int_equal(r.batch, 5);
    unlink(path);
    assert_int_equal(parse(&r, 3, words), -1);
    assert_says(path);
    const char *directory[] = {"/tmp"};
    assert_int_equal(parse(&r, 1, directory), -1);
}

struct words {
    char *at[256];
    int n, shared;
};

static void collect(void *ctx, const struct key *k, const char *value)
{
    struct words *w = ctx;
    assert_true(asprintf(&w->at[w->n++], "%s=%s", k->name, value) > 0);
    w->shared += !k->local;
}

// Parsing the output of config_each() gives the same run.
static void settings_survive_a_round_trip(void **state)
{
    (void)state;
    struct run r = fresh(), back = fresh();
    const char *given[] = {"lr=0.000123456789", "model=nano",
                           "eps=1e-8",          "wire=fp16",
                           "sync=ring",         "straggler=1:2.5",
                           "beta2=0.999",       "seed=9007199254740991"};
    assert_int_equal(parse(&r, 8, given), 0);
    struct words w = {0};
    config_each(&r, collect, &w);
    assert_true(w.shared > 20 && w.shared < w.n);
    for (int i = 0; i < w.n; i++) // words of a worker that is started by hand
        assert_null(strstr(w.at[i], "rendezvous="));
    assert_int_equal(config_parse(&back, w.n, w.at), 0);
    memcpy(back.asked, r.asked, sizeof r.asked);
    memcpy(back.inherited, r.inherited, sizeof r.inherited);
    assert_memory_equal(&r, &back, sizeof r);
    for (int i = 0; i < w.n; i++)
        free(w.at[i]);
}

static int json(struct run *r, const char *text)
{
    *r = fresh();
    return config_json(r, "run.json", text, strlen(text));
}

static void run_json_is_read(void **state)
{
    (void)state;
    struct run r;
    assert_int_equal(json(&r, "{\"world\": 2, \"asked\": {\"steps\": 7, "
                              "\"lr\": 0.01, \"sync\": \"dps\", "
                              "\"wire\": \"fp16\", \"out\": \"o\", "
                              "\"rank\": 1, \"servers\": \"tcp://a:1\"}, "
                              "\"effective\": {\"steps\": 9}}"),
                     0);
    assert_int_equal(r.steps, 7);
    assert_int_equal(json(&r, "{\"asked\": {\"steps\": 7}}\n \n"), 0);
    assert_int_equal(json(&r, "{\"asked\": {\"steps\": 7}} {}"), -1);
    assert_says("run.json: not the run.json of a run");
    assert_int_equal(json(&r, "{\"world\": 2, \"asked\": {\"steps\": 7, "
                              "\"lr\": 0.01, \"sync\": \"dps\", "
                              "\"wire\": \"fp16\", \"out\": \"o\", "
                              "\"rank\": 1, \"servers\": \"tcp://a:1\"}, "
                              "\"effective\": {\"steps\": 9}}"),
                     0);
    assert_true(r.lr == 0.01);
    assert_int_equal(r.settings.wire, DTYPE_F16);
    assert_true(config_asked(&r, "steps") && !config_asked(&r, "batch"));
    // not restored: these belong to one start of a run only
    assert_string_equal(r.out, "");
    assert_int_equal(r.rank, -1);
    assert_int_equal(r.settings.servers.count, 0);
    assert_int_equal(json(&r, "{\"settings\": {\"steps\": 5}}"), 0);
    assert_int_equal(r.steps, 5);
    static const char *const bad[] = {
        "{",
        "{}",
        "{\"asked\": 3}",
        "{\"asked\": {\"steps\": []}}",
        "{\"asked\": {\"stpes\": 3}}",
        "{\"asked\": {\"steps\": 0.5}}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(json(&r, bad[i]), -1);
        assert_says("run.json: ");
    }
}

// What an earlier version wrote means today what it meant then.
static void settings_of_earlier_versions_are_read(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"'inject_rank': 1, 'first_bucket_mb': 1, 'fusion_mb': 1", ""},
        {"'carrier': 'ring', 'cluster': 'mpi'", ""},
        {"'carrier': 'library'", "transport=library"},
        {"'symbols': 'bytes', 'vocab': ''", ""},
        {"'symbols': 'chars', 'vocab': ''", "vocab=chars"},
        {"'symbols': 'bytes', 'vocab': 'a.bpe'", "vocab=a.bpe"},
        {"'tf32': 1", "precision=tf32"},
        {"'precision': 'fp32', 'tf32': 1", "precision=tf32"},
        {"'precision': 'bf16', 'tf32': 1", "precision=bf16"},
        {"'tf32': 0, 'mistake_two_updates': 0, 'mistake_own_steps': ''", ""},
        {"'mistake_two_updates': 1", "mistake=two_updates"},
        {"'mistake_local_clip': 1", "mistake=local_clip"},
        {"'mistake_same_seed': 1", "mistake=same_seed"},
        {"'mistake_own_steps': '1:9'", "mistake=own_steps:1:9"},
        {"'outer_rule': 'average', 'outer_lr': 0.7, 'outer_momentum': 0.9", ""},
        {"'outer_rule': 'nesterov'", "outer_lr=0.7 outer_momentum=0.9"},
        {"'outer_lr': 0.5, 'outer_rule': 'nesterov'",
         "outer_lr=0.5 outer_momentum=0.9"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256], words[128], *word, *rest = words;
        struct run got, want = fresh();
        snprintf(text, sizeof text, "{\"asked\": {%s}}", cases[i][0]);
        for (char *c = text; *c; c++)
            *c = *c == '\'' ? '"' : *c;
        assert_int_equal(json(&got, text), 0);
        strcpy(words, cases[i][1]);
        while ((word = strtok_r(rest, " ", &rest)))
            assert_int_equal(config_parse(&want, 1, &word), 0);
        memset(got.inherited, 0, sizeof got.inherited);
        memset(got.asked, 0, sizeof got.asked);
        memset(want.asked, 0, sizeof want.asked);
        assert_memory_equal(&got, &want, sizeof got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ini_files_are_read),
        cmocka_unit_test(later_words_win_over_earlier),
        cmocka_unit_test(settings_survive_a_round_trip),
        cmocka_unit_test(run_json_is_read),
        cmocka_unit_test(settings_of_earlier_versions_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
