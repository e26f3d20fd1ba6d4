// tell.c - `lockstep tell` answers the Python package, whose commands have only
// text and tables of their own.
//
// Each line of standard input is a question: a JSON array that begins with a
// verb. The answer is one line, a JSON object, {"error": TEXT} if it fails.
//
//     ["table"]                   commands, keys of train, backends, presets
//     ["explain", COMMAND]        its --help, without keys of train; no text
//                                 for a command of the package
//     ["help", ROWS]              what --help says about a table of keys
//     ["words", ROWS, ALL, WORD ..]
//                                 the values of a table after these words.
//                                 ALL: the command that lists all keys
//     ["choice", KEY, VALUE, WORD ..]
//                                 refuses a value that is none of the words
//     and those of doctor/doctor.h and forecast/questions.h
//
// ROWS are objects with members of struct key (config/keys.h).

#include "lockstep/commands.h"

#include "base/base.h"
#include "base/version.h"
#include "config/backends.h"
#include "config/keys.h"
#include "config/value.h"
#include "doctor/doctor.h"
#include "forecast/questions.h"
#include "model/model.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 64, CHOICES = 16, WORDS = 512 };

static void add_texts(cJSON *out, const char *name, const char *const *texts)
{
    int n = 0;
    while (texts[n])
        n++;
    cJSON_AddItemToObject(out, name, cJSON_CreateStringArray(texts, n));
}

// Adds the text that write() writes.
static int add_written(cJSON *out, void (*write)(FILE *f, const void *arg),
                       const void *arg)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return fail("memory: none left for a text");
    write(f, arg);
    fclose(f);
    cJSON_AddStringToObject(out, "text", text);
    free(text);
    return 0;
}

// ---- a table of keys of the package

struct table {
    struct key_table keys;
    struct key rows[ROWS];
    const char *choices[ROWS][CHOICES + 1];
    char values[ROWS][CONFIG_PATH]; // the struct whose members the keys set
};

static const char *text_of(const cJSON *row, const char *name)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(row, name));
}

static double number_of(const cJSON *row, const char *name)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(row, name);
    return cJSON_IsNumber(v) ? v->valuedouble : 0;
}

// A key of several parts is read and shown as the key of train of its name.
static void add_row(struct table *t, const cJSON *row)
{
    static const char *const types[] = {"int",  "int64", "number", "choice",
                                        "word", "text",  "parts",  NULL};
    int i = t->keys.n++, n = 0;
    struct key *k = &t->rows[i];
    const char *name = text_of(row, "name"), *type = text_of(row, "type");
    const cJSON *word;
    CHECK(i < ROWS && name && type);
    const struct key *same = key_find(&run_keys, name);
    cJSON_ArrayForEach(word, cJSON_GetObjectItemCaseSensitive(row, "words"))
    {
        CHECK(n < CHOICES);
        t->choices[i][n++] = cJSON_GetStringValue(word);
    }
    *k = (struct key){.group = text_of(row, "group"),
                      .name = name,
                      .value = text_of(row, "value"),
                      .off = (size_t)i * CONFIG_PATH,
                      .min = number_of(row, "min"),
                      .max = number_of(row, "max"),
                      .zero = text_of(row, "zero"),
                      .words = n ? t->choices[i] : NULL,
                      .unit = text_of(row, "unit"),
                      .help = text_of(row, "help")};
    while (strcmp(types[k->type], type) != 0)
        k->type++;
    if (k->type == KEY_PARTS) {
        CHECK(same && same->read);
        k->read = same->read;
        k->show = same->show;
    }
}

static struct table *read_table(const cJSON *rows, const char *all)
{
    struct table *t = mem_alloc(1, sizeof *t);
    const cJSON *row;
    if (!t)
        return NULL;
    t->keys = (struct key_table){.rows = t->rows, .all = all};
    cJSON_ArrayForEach(row, rows) add_row(t, row);
    return t;
}

static void put_help(FILE *f, const void *keys)
{
    key_help(f, keys);
}

static int tell_help(const cJSON *question, cJSON *out)
{
    struct table *table = read_table(cJSON_GetArrayItem(question, 1), "");
    int rc = table ? add_written(out, put_help, &table->keys) : -1;
    mem_free(table);
    return rc;
}

static int tell_words(const cJSON *question, cJSON *out)
{
    struct table *table =
        read_table(cJSON_GetArrayItem(question, 1),
                   cJSON_GetStringValue(cJSON_GetArrayItem(question, 2)));
    char shown[CONFIG_PATH];
    int rc = table ? 0 : -1;
    if (!rc)
        key_defaults(&table->keys, table->values);
    for (int i = 3; !rc && i < cJSON_GetArraySize(question); i++) {
        char *word = cJSON_GetStringValue(cJSON_GetArrayItem(question, i));
        rc = key_words(&table->keys, table->values, 1, &word);
    }
    for (int i = 0; !rc && i < table->keys.n; i++)
        cJSON_AddStringToObject(out, table->rows[i].name,
                                key_show(&table->rows[i], table->values,
                                         shown));
    mem_free(table);
    return rc;
}

static int tell_choice(const cJSON *question, cJSON *out)
{
    const char *texts[WORDS] = {NULL};
    int n = cJSON_GetArraySize(question);
    (void)out;
    CHECK(n > 3 && n < WORDS);
    for (int i = 1; i < n; i++)
        texts[i - 1] = cJSON_GetStringValue(cJSON_GetArrayItem(question, i));
    return value_word(texts[0], texts[1], texts + 2) < 0 ? -1 : 0;
}

// ---- what this build has

static void add_key(cJSON *list, const struct key *k)
{
    struct key_text text;
    cJSON *out = cJSON_CreateObject();
    cJSON_AddItemToArray(list, out);
    key_describe(k, &text);
    cJSON_AddStringToObject(out, "name", k->name);
    cJSON_AddStringToObject(out, "group", k->group);
    cJSON_AddStringToObject(out, "usual", text.usual);
    cJSON_AddStringToObject(out, "allowed", text.allowed);
    cJSON_AddStringToObject(out, "about", text.about);
    cJSON_AddStringToObject(out, "help", k->help);
    cJSON_AddStringToObject(out, "unit", k->unit ? k->unit : "");
    add_texts(out, "words", k->words ? k->words : (const char *[]){NULL});
}

static void add_backend(cJSON *list, const struct backend *b)
{
    static const char *const traffic[] = {
        [TRAFFIC_NONE] = "none",       [TRAFFIC_OWN] = "own",
        [TRAFFIC_RING] = "ring",       [TRAFFIC_LIBRARY] = "library",
        [TRAFFIC_SERVERS] = "servers", [TRAFFIC_OWNER] = "owner",
        [TRAFFIC_ROUNDS] = "rounds"};
    cJSON *out = cJSON_CreateObject();
    cJSON_AddItemToArray(list, out);
    cJSON_AddStringToObject(out, "name", b->name);
    cJSON_AddStringToObject(out, "help", b->help);
    add_texts(out, "keys", b->keys);
    cJSON_AddNumberToObject(out, "servers", b->servers);
    cJSON_AddStringToObject(out, "traffic", traffic[b->traffic]);
    cJSON_AddBoolToObject(out, "has_law", backend_has_law(b));
    cJSON_AddBoolToObject(out, "is_simulated", backend_is_simulated(b));
    cJSON_AddBoolToObject(out, "shards", b->shards);
    cJSON_AddBoolToObject(out, "apart", b->apart);
    cJSON_AddBoolToObject(out, "parts", b->parts);
}

static int tell_table(const struct command *const *all, cJSON *out)
{
    cJSON *keys = cJSON_AddArrayToObject(out, "keys");
    cJSON *backends = cJSON_AddArrayToObject(out, "backends");
    cJSON *commands = cJSON_AddObjectToObject(out, "commands");
    cJSON *presets = cJSON_AddArrayToObject(out, "presets");
    for (int i = 0; run_keys.n > i; i++)
        add_key(keys, &run_keys.rows[i]);
    for (int i = 0; backend_at(i); i++)
        add_backend(backends, backend_at(i));
    for (int i = 0; all[i]; i++)
        if (all[i]->help)
            cJSON_AddStringToObject(commands, all[i]->name, all[i]->help);
    for (int i = 0; model_preset_name(i); i++)
        cJSON_AddItemToArray(presets, cJSON_CreateString(model_preset_name(i)));
    cJSON_AddStringToObject(out, "version", version_number);
    return 0;
}

static void put_explanation(FILE *f, const void *command)
{
    ((const struct command *)command)->explain(f);
}

static int tell_explain(const struct command *const *all, const cJSON *question,
                        cJSON *out)
{
    const char *name = cJSON_GetStringValue(cJSON_GetArrayItem(question, 1));
    for (int i = 0; name && all[i]; i++)
        if (!strcmp(all[i]->name, name) && all[i]->explain)
            return add_written(out, put_explanation, all[i]);
    return 0;
}

// ---- the command

static const struct verb {
    const char *name;
    int (*answer)(const cJSON *question, cJSON *out);
} verbs[] = {{"help", tell_help},
             {"words", tell_words},
             {"choice", tell_choice},
             {"hosts", doctor_hosts},
             {"cudnn", doctor_cudnn}};

struct teller {
    const struct command *const *all;
    struct forecasts *forecasts;
};

static int answer(const struct teller *t, const cJSON *question, cJSON *out)
{
    const char *verb = cJSON_GetStringValue(cJSON_GetArrayItem(question, 0));
    if (!verb)
        return fail("tell: not an array that begins with a verb");
    if (!strcmp(verb, "table"))
        return tell_table(t->all, out);
    if (!strcmp(verb, "explain"))
        return tell_explain(t->all, question, out);
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (!strcmp(verbs[i].name, verb))
            return verbs[i].answer(question, out);
    return forecasts_answer(t->forecasts, question, out);
}

static int tell_line(const struct teller *t, const char *line)
{
    cJSON *question = cJSON_Parse(line), *out = cJSON_CreateObject();
    if (answer(t, question, out)) {
        cJSON_Delete(out);
        out = cJSON_CreateObject();
        cJSON_AddStringToObject(out, "error", fail_message());
    }
    char *text = cJSON_PrintUnformatted(out);
    int rc = text && printf("%s\n", text) > 0 && !fflush(stdout)
                 ? 0
                 : fail("tell: an answer cannot be written");
    free(text);
    cJSON_Delete(question);
    cJSON_Delete(out);
    return rc;
}

static int tell(const struct command *const *all, int nwords, char **words)
{
    struct teller t = {.all = all};
    char *line = NULL;
    size_t size = 0;
    (void)words;
    int rc = nwords ? fail("tell: reads questions from standard input")
                    : forecasts_open(&t.forecasts);
    while (!rc && getline(&line, &size, stdin) > 0)
        rc = tell_line(&t, line);
    free(line);
    forecasts_close(&t.forecasts);
    return rc;
}

const struct command command_tell = {.name = "tell", .run_all = tell};
