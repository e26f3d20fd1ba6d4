// questions.c - the questions of the commands predict, fit and simulate.

#include "forecast/questions.h"

#include "base/base.h"
#include "config/backends.h"
#include "config/keys.h"
#include "forecast/answers.h"
#include "forecast/sizes.h"
#include "forecast/step_questions.h"
#include "pipeline/timetable.h"
#include "sync/derive.h"
#include "textbook/schedule.h"
#include "train/shape.h"

#include <stdlib.h>
#include <string.h>

enum { WORDS = 512 };

// ---- texts of a question

// The texts of a question after its verb. Returns how many they are, or -1
// after fail().
static int texts_of(const cJSON *question, char *texts[WORDS])
{
    int n = cJSON_GetArraySize(question) - 1;
    if (n > WORDS)
        return fail("tell: more than %d words", WORDS);
    for (int i = 0; i < n; i++)
        if (!(texts[i] =
                  cJSON_GetStringValue(cJSON_GetArrayItem(question, i + 1))))
            return fail("tell: a word that is no text");
    return n;
}

// ---- a run, and the links

static void add_setting(void *ctx, const struct key *k, const char *value)
{
    cJSON_AddStringToObject(ctx, k->name, value);
}

static int about_run(struct forecasts *f, int n, char **words, cJSON *out)
{
    struct model_config *m = &f->model;
    char says[SIZES_TEXT], shown[CONFIG_PATH];
    config_defaults(&f->run);
    if (config_parse(&f->run, n, words) || sizes_model(&f->run, m))
        return -1;
    cJSON *set = cJSON_AddObjectToObject(out, "settings");
    for (int i = 0; i < run_keys.n; i++) {
        const struct key *k = &run_keys.rows[i];
        cJSON_AddStringToObject(set, k->name,
                                key_show(k, key_base(k, &f->run), shown));
    }
    config_each_asked(&f->run, false, add_setting,
                      cJSON_AddObjectToObject(out, "asked"));
    cJSON_AddStringToObject(out, "says", sizes_say(&f->run, m, says));
    answers_add(out, "layers", m->layers);
    answers_add(out, "heads", m->heads);
    answers_add(out, "channels", m->channels);
    answers_add(out, "context", m->context);
    answers_add(out, "vocab", m->vocab);
    answers_add(out, "params", (double)model_nparams(m));
    answers_add(out, "flop", model_flop(m, m->context));
    return 0;
}

static int about_check(struct forecasts *f, int n, char **words, cJSON *out)
{
    struct backend asker = {.name = words[0],
                            .keys = (const char *const *)(words + 1)};
    (void)out;
    words[n] = NULL;
    if (config_check_squeeze(&f->run) ||
        (n > 1 && config_check_backend(&f->run, &asker)))
        return -1;
    return f->run.mesh.n ? sizes_check_mesh(&f->run) : 0;
}

static int about_link(struct forecasts *f, int n, char **words, cJSON *out)
{
    CHECK(n == 4);
    if (links_read(&f->links, words[0], atof(words[1])))
        return -1;
    const struct link_fit *fit =
        *words[2] ? links_find(&f->links, words[2]) : &f->links.fits[0];
    if (!fit)
        return -1;
    answers_add(out, "alpha_s", fit->link.alpha_s);
    answers_add(out, "bytes_per_s", fit->link.bytes_per_s);
    answers_add(out, "sizes", fit->n);
    answers_add(out, "workers", f->links.workers);
    answers_add(out, "off", links_error(fit, atof(words[3])));
    return 0;
}

// ---- memory

static int about_memory(struct forecasts *f, int n, char **words, cJSON *out)
{
    struct run r = f->run;
    struct sizes sizes;
    if (config_parse(&r, n, words))
        return -1;
    if (shape_check(&r)) { // as training does
        cJSON_AddStringToObject(out, "refused", fail_message());
        return 0;
    }
    if (sizes_mesh(&r, &sizes))
        return -1;
    answers_memory(out, "worker", &sizes.worker);
    answers_memory(out, "server", &sizes.server);
    return 0;
}

// ---- laws and timetables

static const char *const algorithms[] = {ALGORITHM_WORDS, NULL};

struct law_words {
    int sync, workers, held, algorithm;
    int op, by; // of a collective; op: 0 for none, else enum schedule_op + 1
    size_t n, piece;
};

static const struct key law_rows[] = {
    {ANSWERS_ROW(law_words, sync, NULL, KEY_CHOICE), .words = backend_names},
    {ANSWERS_ROW(law_words, workers, "2", KEY_INT), .max = 1 << 20},
    {ANSWERS_ROW(law_words, held, "0", KEY_INT), .max = 1},
    {ANSWERS_ROW(law_words, algorithm, NULL, KEY_CHOICE), .words = algorithms},
    {ANSWERS_ROW(law_words, op, "0", KEY_INT), .max = SCHEDULE_OPS},
    {ANSWERS_ROW(law_words, by, "0", KEY_INT), .max = SCHEDULE_ALGORITHMS - 1},
    {ANSWERS_ROW(law_words, n, "1", KEY_INT64), .max = 1e15},
    {ANSWERS_ROW(law_words, piece, "1", KEY_INT64), .max = 1e15},
};

static const struct key_table law_keys = {law_rows,
                                          sizeof law_rows / sizeof *law_rows,
                                          "forecast/questions.c"};

// Finds the law of the run's compressed gradients, with squeeze=.
static int law_squeezed(const struct forecasts *f, const struct law_words *w,
                        struct law *out)
{
    const struct backend *b = backend_at(w->sync);
    struct sync_settings set = f->run.settings;
    if (!set.squeeze)
        return 0;
    sync_derive(&set, b, w->workers, model_nparams(&f->model));
    int follow = shape_squeezed_law(&f->model, b, &set, w->workers, 0, out);
    return follow < 0 ? -1 : 0;
}

static int about_law(struct forecasts *f, int n, char **words, cJSON *out)
{
    struct law_words w;
    struct law squeezed;
    key_defaults(&law_keys, &w);
    if (key_words(&law_keys, &w, n, words) || law_squeezed(f, &w, &squeezed))
        return -1;
    const struct schedule collective = {.op = (enum schedule_op)(w.op - 1),
                                        .algorithm =
                                            (enum schedule_algorithm)w.by,
                                        .world = w.workers,
                                        .n = w.n,
                                        .piece = w.piece};
    const struct law_case exchange = {.workers = w.workers,
                                      .held = w.held,
                                      .algorithm = (enum algorithm)w.algorithm,
                                      .squeezed = f->run.settings.squeeze
                                                      ? &squeezed
                                                      : NULL};
    struct law law = w.op ? schedule_law(&collective)
                          : law_of(backend_at(w.sync), &exchange);
    answers_add(out, "hops", law.hops);
    answers_add(out, "share", law.share);
    return 0;
}

struct timetable_words {
    int pipeline, stages, micro, chunks, ahead;
    double hop_ms;
    char forward_ms[CONFIG_PATH], backward_ms[CONFIG_PATH]; // by stage, or one
};

static const struct key timetable_rows[] = {
    {ANSWERS_ROW(timetable_words, pipeline, NULL, KEY_CHOICE),
     .words = pipeline_names},
    {ANSWERS_ROW(timetable_words, stages, "1", KEY_INT),
     .max = PIPELINE_STAGES},
    {ANSWERS_ROW(timetable_words, micro, "1", KEY_INT), .max = PIPELINE_MICRO},
    {ANSWERS_ROW(timetable_words, chunks, "1", KEY_INT),
     .max = PIPELINE_CHUNKS},
    {ANSWERS_ROW(timetable_words, ahead, "0", KEY_INT), .max = PIPELINE_STAGES},
    {ANSWERS_ROW(timetable_words, hop_ms, "0", KEY_NUMBER), .max = 1e9},
    {ANSWERS_ROW(timetable_words, forward_ms, "", KEY_TEXT)},
    {ANSWERS_ROW(timetable_words, backward_ms, "", KEY_TEXT)},
};

static const struct key_table timetable_keys = {timetable_rows,
                                                sizeof timetable_rows /
                                                    sizeof *timetable_rows,
                                                "forecast/questions.c"};

// Reads seconds by stage; the last one holds for the stages after it.
static void read_times(const char *text, double out[PIPELINE_STAGES])
{
    const char *comma = text;
    for (int s = 0; s < PIPELINE_STAGES; s++) {
        out[s] = comma ? atof(text) * 1e-3 : out[s - 1];
        comma = comma ? strchr(text, ',') : NULL;
        text = comma ? comma + 1 : text;
    }
}

static void add_entries(cJSON *out, const struct timetable_entry *e, int n)
{
    cJSON *list = cJSON_AddArrayToObject(out, "entries");
    for (int i = 0; i < n; i++) {
        const double row[] = {e[i].stage,        e[i].action.kind,
                              e[i].action.micro, e[i].action.chunk,
                              e[i].begin_s,      e[i].end_s};
        cJSON *entry = cJSON_CreateArray();
        for (size_t k = 0; k < sizeof row / sizeof *row; k++)
            cJSON_AddItemToArray(entry, answers_number(row[k]));
        cJSON_AddItemToArray(list, entry);
    }
}

static int about_timetable(struct forecasts *f, int n, char **words, cJSON *out)
{
    struct timetable_words w;
    double forward_s[PIPELINE_STAGES], backward_s[PIPELINE_STAGES];
    (void)f;
    key_defaults(&timetable_keys, &w);
    if (key_words(&timetable_keys, &w, n, words))
        return -1;
    const struct pipeline p = {(enum pipeline_kind)w.pipeline, w.stages,
                               w.micro, w.chunks, w.ahead};
    const struct pipeline_times times = {forward_s, backward_s, w.hop_ms * 1e-3,
                                         NULL};
    if (pipeline_check(&p))
        return -1;
    read_times(w.forward_ms, forward_s);
    read_times(w.backward_ms, backward_s);
    int count = p.stages * timetable_length(&p);
    struct timetable_entry *e = mem_alloc((size_t)count, sizeof *e);
    double seconds = e ? timetable_run(&p, &times, e) : -1;
    if (seconds >= 0) {
        answers_add(out, "seconds", seconds);
        answers_add(out, "bubble", timetable_bubble(&p));
        add_entries(out, e, count);
        cJSON *slots = cJSON_AddArrayToObject(out, "slots");
        for (int s = 0; s < p.stages; s++)
            cJSON_AddItemToArray(slots, answers_number(timetable_slots(&p, s)));
    }
    mem_free(e);
    return seconds < 0 ? -1 : 0;
}

// ---- all questions

static const struct verb {
    const char *name;
    int (*answer)(struct forecasts *f, int n, char **words, cJSON *out);
} verbs[] = {{"run", about_run},         {"check", about_check},
             {"link", about_link},       {"step", step_answer},
             {"best", step_answer_best}, {"memory", about_memory},
             {"law", about_law},         {"timetable", about_timetable}};

int forecasts_open(struct forecasts **f)
{
    *f = mem_alloc(1, sizeof **f);
    return *f ? 0 : -1;
}

void forecasts_close(struct forecasts **f)
{
    mem_free(*f);
    *f = NULL;
}

int forecasts_answer(struct forecasts *f, const cJSON *question, cJSON *out)
{
    const char *verb = cJSON_GetStringValue(cJSON_GetArrayItem(question, 0));
    char *words[WORDS + 1];
    int n = texts_of(question, words);
    for (size_t i = 0; n >= 0 && i < sizeof verbs / sizeof *verbs; i++)
        if (!strcmp(verbs[i].name, verb))
            return verbs[i].answer(f, n, words, out);
    return n < 0 ? -1 : fail("tell: no question begins with %.60s", verb);
}
