// test_config.c - the keys of a run: their defaults, ranges, fields and help,
// the keys that each backend reads, and checks across keys.

#include "config/config.h"

#include "base/base.h"
#include "config/backends.h"
#include "config/keys.h"
#include "config/value.h"

#include <math.h>
#include <stdlib.h>

#include "tests/fresh_run.h"

static int set(const char *key, const char *value)
{
    struct run r = fresh();
    return config_set(&r, key, value);
}

static void defaults_pass_their_own_checks(void **state)
{
    (void)state;
    struct run r = fresh();
    assert_int_equal(config_check(&r), 0);
    assert_string_equal(r.sync, "local");
    for (int i = 0; i < CONFIG_KEYS; i++)
        assert_false(r.asked[i]);
    for (int i = 0; i < run_keys.n; i++) {
        const struct key *k = &run_keys.rows[i];
        const char *value = key_default(k);
        if ((*value || !k->check) && set(k->name, value))
            wrong("%s: its default is refused: %s", k->name, fail_message());
        assert_non_null(k->help);
    }
}

static void every_name_is_unique(void **state)
{
    (void)state;
    for (int i = 0; i < run_keys.n; i++) {
        assert_ptr_equal(key_find(&run_keys, run_keys.rows[i].name),
                         &run_keys.rows[i]);
        assert_true(strlen(run_keys.rows[i].name) < CONFIG_WORD);
    }
}

// Every key that takes a number refuses a number outside its range, and text
// that is no number. The error names the value.
static void numbers_out_of_range_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",    "1e30", "-1e30",   "nan",
        "inf", "0x10", "12abc",   " 1",
        "1 ",  "one",  "1,5",     "--1",
        "1e",  ".",    "1e99999", "-99999999999999999999999999999999",
    };
    for (int i = 0; i < run_keys.n; i++) {
        const struct key *k = &run_keys.rows[i];
        bool flag = k->type == KEY_INT && !k->zero && !k->min && k->max == 1;
        if (k->type > KEY_NUMBER)
            continue;
        for (size_t j = 0; j < sizeof bad / sizeof *bad; j++) {
            if (set(k->name, bad[j]) == 0)
                wrong("%s=%s was accepted", k->name, bad[j]);
            assert_says(bad[j]);
            assert_says(k->name);
            assert_says(flag ? "want 0 or 1" : " .. ");
        }
        char below[32];
        value_text(below, k->min - 1);
        if (!(k->zero && k->min == 1))
            assert_int_equal(set(k->name, below), -1);
        assert_int_equal(set(k->name, value_text(below, k->max * 2)), -1);
        assert_int_equal(set(k->name, value_text(below, k->min)), 0);
        assert_int_equal(set(k->name, value_text(below, k->max)), 0);
    }
}

static void zero_is_refused_where_it_means_nothing(void **state)
{
    (void)state;
    assert_int_equal(set("batch", "0"), -1);
    assert_int_equal(set("steps", "0"), -1);
    assert_int_equal(set("lr", "0"), -1);
    assert_int_equal(set("batch", "-4"), -1);
    assert_int_equal(set("batch", "1.5"), -1);
    assert_says("batch=1.5: want a whole number, 1 .. 65536 sequences");
    assert_int_equal(set("layers", "0"), 0);
    assert_int_equal(set("loss_scale", "dynamic"), 0);
    assert_int_equal(set("loss_scale", "0.5"), -1);
    assert_int_equal(set("val_fraction", "0"), 0);
}

static void values_are_stored_in_their_fields(void **state)
{
    (void)state;
    struct run r = fresh();
    const char *words[] = {"layers=3",
                           "lr=3e-4",
                           "optimizer=sgd",
                           "precision=fp16",
                           "seed=9007199254740991",
                           "steps=1e6",
                           "data=a,b;c.txt",
                           "timeout=0.5",
                           "schedule=linear",
                           "vocab=chars"};
    assert_int_equal(parse(&r, 10, words), 0);
    assert_int_equal(r.layers, 3);
    assert_true(r.lr == 3e-4);
    assert_int_equal(r.optimizer, 1);
    assert_int_equal(r.precision, PRECISION_FP16);
    assert_true(r.seed == 9007199254740991);
    assert_int_equal(r.steps, 1000000);
    assert_string_equal(r.data, "a,b;c.txt");
    assert_true(r.timeout == 0.5);
    assert_int_equal(r.schedule, 2);
    assert_string_equal(r.vocab, "chars");
}

static void text_is_checked(void **state)
{
    (void)state;
    char path[CONFIG_PATH + 8];
    memset(path, 'p', sizeof path);
    path[CONFIG_PATH] = '\0';
    assert_int_equal(set("data", path), -1);
    path[CONFIG_PATH - 1] = '\0';
    assert_int_equal(set("data", path), 0);
    assert_int_equal(set("out", "a\nb"), -1);
    assert_int_equal(set("model", ""), -1);
    assert_int_equal(set("straggler", "1:2"), 0);
    assert_int_equal(set("straggler", ""), 0);
    assert_int_equal(set("straggler", "1"), -1);
    assert_int_equal(set("straggler", "1:0.5"), -1);
    assert_int_equal(set("straggler", "1:nan"), -1);
    assert_int_equal(set("straggler", "1:2e"), -1);
    assert_int_equal(set("straggler", "00001:2"), 0);
    assert_int_equal(set("pace", "26,51"), 0);
    assert_int_equal(set("pace", "26,51e"), -1);
    assert_int_equal(set("pace", ",51"), -1);
    assert_int_equal(set("pace", ""), 0);
    assert_int_equal(set("profile", "20:5"), 0);
    assert_int_equal(set("profile", ""), 0);
    assert_int_equal(set("profile", "20"), -1);
    assert_int_equal(set("profile", "0:5"), -1);
    assert_int_equal(set("profile", "1:0"), -1);
    assert_int_equal(set("consistency", "ssp:3"), 0);
    assert_int_equal(set("consistency", "ssp:"), -1);
    assert_int_equal(set("consistency", "ssp:-1"), -1);
    assert_int_equal(set("consistency", "ssp"), -1);
    assert_int_equal(set("consistency", "12"), -1);
}

static void backend_keys_become_settings(void **state)
{
    (void)state;
    struct run r = fresh();
    const struct sync_settings *set = &r.settings;
    const char *words[] = {"wire=bf16",
                           "servers=tcp://a:1,tcp://b:2",
                           "bucket_mb=25",
                           "wire=fp16",
                           "consistency=ssp:3",
                           "update=worker",
                           "algorithm=tree",
                           "transport=mpi",
                           "inject=delay:5:100@3",
                           "staging=always"};
    assert_int_equal(parse(&r, 10, words), 0);
    assert_int_equal(set->wire, DTYPE_F16);
    assert_int_equal(set->servers.count, 2);
    assert_string_equal(set->servers.endpoints, "tcp://a:1,tcp://b:2");
    assert_true(set->bucket_mb == 25);
    assert_int_equal(set->consistency.kind, CONSISTENCY_SSP);
    assert_int_equal(set->consistency.bound, 3);
    assert_int_equal(set->update, UPDATER_WORKER);
    assert_int_equal(set->algorithm, ALGORITHM_TREE);
    assert_int_equal(set->transport, TRANSPORT_MPI);
    assert_int_equal(set->inject.kind, FAULT_DELAY);
    assert_int_equal(set->inject.at, 5);
    assert_int_equal(set->inject.ms, 100);
    assert_int_equal(set->inject.rank, 3);
    assert_int_equal(set->staging, STAGING_ALWAYS);
    assert_int_equal(set->slice_kb, 256);
    assert_true(config_asked(&r, "wire") && config_asked(&r, "servers"));
    assert_false(config_asked(&r, "slice_kb"));
    struct run before = r;
    assert_int_equal(config_set(&r, "bucket_mb", "-1"), -1);
    assert_int_equal(config_set(&r, "wire", "int8"), -1);
    assert_int_equal(config_set(&r, "servers", "a,b"), -1);
    assert_int_equal(config_set(&r, "servers", "0"), -1);
    assert_int_equal(config_set(&r, "servers", "9999"), -1);
    assert_int_equal(config_set(&r, "servers", "tcp://a:1,tcp://b:65536"), -1);
    assert_says("\"65536\" is not a port");
    assert_int_equal(config_set(&r, "servers", "tcp://a:1,"), -1);
    assert_int_equal(config_set(&r, "rendezvous", "tcp://a:7x"), -1);
    assert_int_equal(config_set(&r, "rendezvous", "tcp://a:1,tcp://b:2"), -1);
    assert_int_equal(config_set(&r, "inject", "bang:1"), -1);
    assert_says("bang");
    assert_int_equal(config_set(&r, "inject", "delay:1"), -1);
    assert_int_equal(config_set(&r, "inject", "kill:1@"), -1);
    assert_int_equal(config_set(&r, "inject", "kill:1@-1"), -1);
    assert_int_equal(config_set(&r, "inject", "kill:1@4096"), -1);
    assert_int_equal(config_set(&r, "inject", "kill:1@2x"), -1);
    assert_int_equal(config_set(&r, "inject_rank", "1"), -1);
    assert_non_null(strstr(fail_message(), "try: inject=kill:10@1"));
    assert_int_equal(config_set(&r, "carrier", "library"), -1);
    assert_non_null(
        strstr(fail_message(), "try: sync=allreduce, or transport=library"));
    assert_int_equal(config_set(&r, "inject", "kill"), -1);
    assert_says("want delay:STEP:MS, or KIND:STEP with fail, kill, nan or inf");
    char full[CONFIG_PATH + 8];
    memset(full, 's', sizeof full);
    memcpy(full, "tcp://", 6);
    full[CONFIG_PATH] = '\0';
    assert_int_equal(config_set(&r, "servers", full), -1);
    assert_memory_equal(&before, &r, sizeof r);
    assert_int_equal(config_set(&r, "servers", "3"), 0);
    assert_int_equal(set->servers.count, 3);
    assert_string_equal(set->servers.endpoints, "");
}

// The fields of a backend's row agree with each other.
static void rows_of_backends_are_consistent(void **state)
{
    (void)state;
    const struct backend *b;
    for (int i = 0; (b = backend_at(i)); i++) {
        assert_string_equal(backend_names[i], b->name);
        assert_ptr_equal(backend_find(b->name), b);
        assert_int_equal(b->launch == LAUNCH_ALONE, i == 0);
        assert_int_equal(b->traffic == TRAFFIC_NONE, i == 0);
        assert_int_equal(b->launch == LAUNCH_SERVERS, b->servers != 0);
        assert_int_equal(b->traffic == TRAFFIC_SERVERS, b->servers != 0);
        assert_int_equal(backend_reads(b, "transport"), b->transports != 0);
        for (const char *const *key = b->keys; *key; key++) {
            const struct key *k = key_find(&run_keys, *key);
            if (!k || !k->backend)
                wrong("%s reads %s=, which is no key of [backend]", b->name,
                      *key);
        }
    }
    assert_null(backend_find("none"));
}

// The chosen backend refuses a key that it does not read, and a value that it
// does not support.
static void backends_refuse_keys_of_others(void **state)
{
    (void)state;
    static const struct {
        const char *sync, *word, *says;
    } bad[] = {
        {"sync=local", "slice_kb=7", "slice_kb=7: local has no such setting"},
        {"sync=local", "wire=fp32", "wire=fp32: local has no such setting"},
        {"sync=ring", "algorithm=ring", "ring has no such setting"},
        {"sync=ring", "servers=1", "ring has no such setting"},
        {"sync=allreduce", "slice_kb=256", "allreduce has no such setting"},
        {"sync=dps", "algorithm=ring", "dps has no such setting"},
        {"sync=ring", "transport=zmq", "transport=zmq: not one of auto, tcp"},
        {"sync=sps", "transport=shm", "transport=shm: not one of auto, zmq"},
        {"sync=ring", "transport=library", "not one of auto, tcp, shm"},
        {"sync=zero", "shard=2 staging=always", "try: staging=auto"},
        {"sync=allreduce", "iface=lo", "iface=lo: allreduce does not listen"},
        {"sync=sps", "backup=1 elastic=1", "backup=1 requires consistency=bsp"},
        {"sync=dps", "backup=1 consistency=asp", "backup=1 requires"},
        {"sync=dps", "update=worker consistency=ssp:3",
         "update=worker requires consistency=bsp"},
        {"sync=dps", "update=worker elastic=1", "that elastic=1 needs"},
        {"sync=dps", "transport=mpi elastic=1", "try: transport=zmq"},
        {"sync=sps", "verify=5 elastic=1", "verify=5: with elastic=1"},
        {"sync=sps", "verify=5 consistency=asp", "under consistency=asp"},
        {"sync=dps", "verify=5 consistency=ssp:3", "verify=5 compares"},
        {"sync=dps", "elastic=1 precision=fp16", "try: loss_scale=1024"},
    };
    static const char *const good[][2] = {
        {"sync=local", "overlap=0"},     {"sync=ring", "transport=shm"},
        {"sync=ring", "iface=lo"},       {"sync=sps", "transport=mpi"},
        {"sync=allreduce", "wire=fp16"}, {"sync=dps", "elastic=1"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct run r = fresh();
        char first[64];
        const char *second = strchr(bad[i].word, ' ');
        snprintf(first, sizeof first, "%.*s", (int)strcspn(bad[i].word, " "),
                 bad[i].word);
        const char *words[] = {bad[i].sync, first, second ? second + 1 : ""};
        assert_int_equal(parse(&r, second ? 3 : 2, words), 0);
        assert_int_equal(config_check(&r), -1);
        assert_says(bad[i].says);
    }
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct run r = fresh();
        const char *words[] = {good[i][0], good[i][1]};
        assert_int_equal(parse(&r, 2, words), 0);
        assert_int_equal(config_check(&r), 0);
    }
}

static void checks_across_keys(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"min_lr=0.1", "lr=0.01"},   {"heads=3", "channels=128"},
        {"resume=auto", "save=0"},   {"save=10", "keep=1"},
        {"rank=2", "world=2"},       {"rank=2", "batch=2"},
        {"sync=local", "workers=2"}, {"pace=1,2", "eval=5"},
        {"pace=1,2", "verify=1"},    {"pace=1,2", "device=cuda"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct run r = fresh();
        const char *words[] = {bad[i][0], bad[i][1]};
        assert_int_equal(parse(&r, 2, words), 0);
        if (config_check(&r) == 0)
            wrong("%s %s passed", bad[i][0], bad[i][1]);
    }
}

// Checks that need the number of workers.
static void checks_of_a_world(void **state)
{
    (void)state;
    static const struct {
        const char *words[2];
        int world, rc;
    } cases[] = {
        {{"straggler=1:2", "batch=2"}, 2, 0},
        {{"straggler=2:2", "batch=2"}, 2, -1},
        {{"inject=fail:1@1", "batch=2"}, 2, 0},
        {{"inject=fail:1@2", "batch=2"}, 2, -1},
        {{"backup=1", "batch=2"}, 2, 0},
        {{"backup=2", "batch=2"}, 2, -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct run r = fresh();
        assert_int_equal(parse(&r, 2, cases[i].words), 0);
        assert_int_equal(config_check_world(&r, cases[i].world), cases[i].rc);
    }
}

// The error for a renamed key says its new name. The old name finds no key.
static void old_keys_say_their_new_name(void **state)
{
    (void)state;
    int renamed = 0;
    for (int i = 0; i < run_keys.n; i++) {
        const struct key *k = &run_keys.rows[i];
        char word[CONFIG_WORD], want[128];
        if (!k->was)
            continue;
        struct run r = fresh();
        snprintf(word, sizeof word, "%s=1", k->was);
        snprintf(want, sizeof want, "%s= is called %s= now", k->was, k->name);
        assert_int_equal(parse(&r, 1, (const char *[]){word}), -1);
        assert_non_null(strstr(fail_message(), want));
        assert_null(key_find(&run_keys, k->was));
        renamed++;
    }
    assert_true(renamed > 0);
}

// --help says what every key of several parts takes, and each mistake=.
static void help_lists_what_is_allowed(void **state)
{
    (void)state;
    char kinds[CONFIG_PATH], want[CONFIG_WORD], *rest = kinds;
    int n = 0;
    for (int i = 0; i < run_keys.n; i++)
        assert_true(run_keys.rows[i].type != KEY_PARTS ||
                    run_keys.rows[i].unit);
    strcpy(kinds, key_find(&run_keys, "mistake")->unit);
    for (const char *kind; (kind = strsep(&rest, "|")); n++) {
        struct run r = fresh();
        bool numbers = !strcmp(kind, "own_steps:R:N");
        snprintf(want, sizeof want, "mistake=%s",
                 numbers ? "own_steps:1:40" : kind);
        assert_int_equal(parse(&r, 1, (const char *[]){want}), 0);
    }
    assert_int_equal(n, MISTAKES);
}

// Replaces each run of blanks and newlines by one blank.
static void squeeze(char *text)
{
    char *to = text;
    for (const char *from = text; *from; from++) {
        bool blank = *from == ' ' || *from == '\n';
        if (!blank || (to > text && to[-1] != ' '))
            *to++ = blank ? ' ' : *from;
    }
    *to = '\0';
}

static void help_lists_every_key(void **state)
{
    (void)state;
    char *text = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);
    assert_non_null(f);
    config_help(f);
    fclose(f);
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
        assert_in_range(strcspn(line, "\n"), 0, 80);
    for (int i = 0; i < run_keys.n; i++) {
        char row[64];
        snprintf(row, sizeof row, "\n  %-20s", run_keys.rows[i].name);
        assert_non_null(strstr(text, row)); // all defaults in one column
    }
    squeeze(text);
    const char *at = text;
    for (int i = 0; i < run_keys.n; i++) {
        const struct key *k = &run_keys.rows[i];
        const char *help = strstr(at, k->help);
        assert_non_null(help);
        const char *unit = k->unit ? strstr(at, k->unit) : NULL;
        if (k->unit && k->type <= KEY_NUMBER)
            assert_true(unit && unit < help);
        at = help;
    }
    assert_non_null(strstr(text, " 0|1 "));
    assert_null(strstr(text, "0..1 "));
    assert_non_null(strstr(text, "1..1e9 steps"));
    assert_non_null(strstr(text, "1..2^30 sequences"));
    assert_non_null(strstr(text, " [all but outer] "));
    free(text);
}

static void shortest_text_of_a_number(void **state)
{
    (void)state;
    char buf[32];
    assert_string_equal(value_text(buf, 0.1), "0.1");
    assert_string_equal(value_text(buf, 0), "0");
    assert_string_equal(value_text(buf, 65536), "65536");
    assert_string_equal(value_text(buf, 1e9), "1e9");
    assert_string_equal(value_text(buf, 1e-8), "1e-8");
    assert_string_equal(value_text(buf, -1.5e30), "-1.5e30");
    assert_string_equal(value_text(buf, 1e10), "1e10");
    assert_true(strtod(value_text(buf, 1.0 / 3), NULL) == 1.0 / 3);
}

static void read_line(struct run *r, const char *words)
{
    char copy[256], *w[8], *save = NULL;
    int n = 0;
    strcpy(copy, words);
    for (w[n] = strtok_r(copy, " ", &save); w[n];
         w[n] = strtok_r(NULL, " ", &save))
        n++;
    config_defaults(r);
    assert_int_equal(config_parse(r, n, w), 0);
}

// global_batch sets accum if the user gave batch, and batch if not.
static void a_global_batch_is_divided(void **state)
{
    (void)state;
    struct run r;
    read_line(&r, "batch=4");
    assert_int_equal(config_settle_batch(&r, 3), 0);
    assert_true(r.batch == 4 && r.accum == 1);
    read_line(&r, "global_batch=32 batch=4");
    assert_int_equal(config_settle_batch(&r, 2), 0);
    assert_true(r.batch == 4 && r.accum == 4);
    read_line(&r, "global_batch=32");
    assert_int_equal(config_settle_batch(&r, 2), 0);
    assert_true(r.batch == 16 && r.accum == 1);
    read_line(&r, "global_batch=32 accum=2");
    assert_int_equal(config_settle_batch(&r, 4), 0);
    assert_true(r.batch == 4 && r.accum == 2);
    read_line(&r, "global_batch=32 accum=2 batch=8");
    assert_int_equal(config_settle_batch(&r, 2), 0);
    assert_int_equal(config_settle_batch(&r, 4), -1);
    assert_non_null(strstr(fail_message(), "leave one of them out"));
    read_line(&r, "global_batch=32 batch=5");
    assert_int_equal(config_settle_batch(&r, 2), -1);
    assert_non_null(strstr(fail_message(), "try: global_batch=40"));
    read_line(&r, "lr_scale=sqrt");
    assert_int_equal(config_check(&r), -1);
    assert_non_null(strstr(fail_message(), "base_batch"));
    assert_true(config_lr_factor(LR_SCALE_NONE, 32, 8) == 1);
    assert_true(config_lr_factor(LR_SCALE_SQRT, 32, 8) == 2);
    assert_true(config_lr_factor(LR_SCALE_LINEAR, 32, 8) == 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_pass_their_own_checks),
        cmocka_unit_test(every_name_is_unique),
        cmocka_unit_test(numbers_out_of_range_are_refused),
        cmocka_unit_test(zero_is_refused_where_it_means_nothing),
        cmocka_unit_test(values_are_stored_in_their_fields),
        cmocka_unit_test(text_is_checked),
        cmocka_unit_test(backend_keys_become_settings),
        cmocka_unit_test(rows_of_backends_are_consistent),
        cmocka_unit_test(backends_refuse_keys_of_others),
        cmocka_unit_test(checks_across_keys),
        cmocka_unit_test(checks_of_a_world),
        cmocka_unit_test(a_global_batch_is_divided),
        cmocka_unit_test(old_keys_say_their_new_name),
        cmocka_unit_test(help_lists_every_key),
        cmocka_unit_test(help_lists_what_is_allowed),
        cmocka_unit_test(shortest_text_of_a_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
