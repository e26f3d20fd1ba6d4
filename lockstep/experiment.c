// experiment.c - reads an experiment's INI and makes its cells.

#include "lockstep/experiment.h"

#include "base/base.h"
#include "config/config.h"
#include "lockstep/figure.h"

#include <errno.h>
#include <ini.h>
#include <stdlib.h>
#include <string.h>

static int add_word(struct word_list *l, const char *key, const char *value)
{
    if (l->n == EXP_WORDS)
        return fail("%s=%s: more than %d settings", key, value, EXP_WORDS);
    if (text_into(l->at[l->n], EXP_WORD, "%s=%s", key, value))
        return -1;
    l->n++;
    return 0;
}

static int add_words(struct word_list *to, const struct word_list *from)
{
    for (int i = 0; i < from->n; i++) {
        if (to->n == EXP_WORDS)
            return fail("%s: more than %d settings", from->at[i], EXP_WORDS);
        memcpy(to->at[to->n++], from->at[i], EXP_WORD);
    }
    return 0;
}

// Adds one value. "batch=2 (steps=160)" sets both, and names the cell batch=2.
static int add_one(struct axis *a, char *value)
{
    char *open = strchr(value, '('), *close = strchr(value, ')');
    if (!!open != !!close || (open && (open == value || close < open ||
                                       close[1 + strspn(close + 1, " \t")])))
        return fail("[matrix] %s = %s: must be VALUE or VALUE (key=value ..)",
                    a->key, value);
    if (open)
        *open = *close = '\0';
    for (size_t n = strlen(value); n && strchr(" \t", value[n - 1]);)
        value[--n] = '\0';
    if (text_into(a->hidden[a->n], EXP_WORD, "%s", open ? open + 1 : "") ||
        text_into(a->values[a->n], EXP_WORD, "%s", value))
        return -1;
    a->n++;
    return 0;
}

// Appends the values of "a, b, c" to the axis `key`.
static int add_axis(struct axis *a, const char *key, const char *list)
{
    char copy[EXP_TEXT], *save = NULL;
    if (text_into(a->key, sizeof a->key, "%s", key) ||
        text_into(copy, sizeof copy, "%s", list))
        return -1;
    for (char *v = strtok_r(copy, ",", &save); v;
         v = strtok_r(NULL, ",", &save)) {
        if (a->n == EXP_VALUES)
            return fail("%s: more than %d values", key, EXP_VALUES);
        if (add_one(a, v + strspn(v, " \t")))
            return -1;
    }
    return a->n ? 0 : fail("%s: no values", key);
}

static struct axis *find_axis(struct experiment *e, const char *key)
{
    for (int i = 0; i < e->naxes; i++)
        if (!strcmp(e->axes[i].key, key))
            return &e->axes[i];
    return NULL;
}

// Appends a piece of a value: inih passes a value of several lines in pieces.
static int add_text(char *to, const char *more)
{
    size_t at = strlen(to);
    int rc = text_into(to + at, EXP_TEXT - at, "%s%s", at ? " " : "", more);
    text_visible(to);
    return rc;
}

static int set_target(struct experiment *e, const char *value)
{
    char *end;
    e->target = strcmp(value, "auto") ? strtod(value, &end) : 0;
    if (strcmp(value, "auto") && (*end || !(e->target > 0)))
        return fail("target_loss=%s: must be auto or a loss above 0", value);
    return 0;
}

static int about(struct experiment *e, const char *key, const char *value)
{
    const struct {
        const char *key;
        char *to;
    } texts[] = {{"title", e->title},       {"question", e->question},
                 {"expect", e->expect},     {"figures", e->figures},
                 {"baseline", e->baseline}, {"peer_python", e->peer_python}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!strcmp(key, texts[i].key))
            return add_text(texts[i].to, value);
    if (!strcmp(key, "target_loss"))
        return set_target(e, value);
    if (strcmp(key, "repeat"))
        return fail("[experiment] %s: unknown key; try: title, question, "
                    "expect, figures, repeat, baseline, target_loss, "
                    "peer_python",
                    key);
    e->repeat = atoi(value);
    return e->repeat >= 1 && e->repeat <= EXP_REPEATS
               ? 0
               : fail("repeat=%s: must be 1 .. %d", value, EXP_REPEATS);
}

static int named(struct experiment *e, const char *name, const char *key,
                 const char *value)
{
    struct named_cell *c = e->nnamed ? &e->named[e->nnamed - 1] : NULL;
    if (!c || strcmp(c->name, name)) {
        if (e->nnamed == EXP_VALUES)
            return fail("[cell %s]: more than %d cells", name, EXP_VALUES);
        c = &e->named[e->nnamed++];
        if (text_into(c->name, sizeof c->name, "%s", name))
            return -1;
    }
    if (!strcmp(key, "peer")) {
        c->peer = true;
        return strcmp(value, "ddp")
                   ? fail("[cell %s] peer=%s: must be ddp", name, value)
                   : 0;
    }
    return add_word(&c->words, key, value);
}

// inih calls this for each line. Returns 1 to continue, 0 after fail().
static int take(void *ctx, const char *section, const char *key,
                const char *value)
{
    struct experiment *e = ctx;
    int rc;
    e->keys++;
    if (!strcmp(section, "experiment"))
        rc = about(e, key, value);
    else if (!strcmp(section, "base"))
        rc = add_word(&e->base, key, value);
    else if (!strncmp(section, "cell ", 5))
        rc = named(e, section + 5, key, value);
    else if (strcmp(section, "matrix"))
        rc = fail("[%s]: unknown section; try: experiment, base, matrix or "
                  "cell NAME",
                  section);
    else if (find_axis(e, key)) // a further line of its values
        rc = add_axis(find_axis(e, key), key, value);
    else if (e->naxes == EXP_AXES)
        rc = fail("[matrix] %s: more than %d keys", key, EXP_AXES);
    else
        rc = add_axis(&e->axes[e->naxes++], key, value);
    return rc == 0;
}

// Applies a word of the command line. It sets a key of [experiment], replaces
// the values of a key of [matrix], or adds a setting to [base].
static int override(struct experiment *e, const char *word)
{
    char key[64];
    const char *equals = strchr(word, '=');
    if (!equals)
        return fail("%s: must be key=value", word);
    if (text_into(key, sizeof key, "%.*s", (int)(equals - word), word))
        return -1;
    if (!strcmp(key, "baseline"))
        e->baseline[0] = '\0';
    if (!strcmp(key, "figures"))
        e->figures[0] = '\0';
    if (!strcmp(key, "peer_python"))
        e->peer_python[0] = '\0';
    if (!strcmp(key, "baseline") || !strcmp(key, "peer_python") ||
        !strcmp(key, "figures") || !strcmp(key, "repeat") ||
        !strcmp(key, "target_loss"))
        return about(e, key, equals + 1);
    struct axis *a = find_axis(e, key);
    if (!a)
        return add_word(&e->base, key, equals + 1);
    a->n = 0;
    return add_axis(a, key, equals + 1);
}

// Adds the settings of "workers=2 batch=8" to a cell.
static int add_several(struct cell *c, const struct axis *a, const char *words)
{
    char copy[EXP_WORD], *save = NULL;
    strcpy(copy, words);
    for (char *w = strtok_r(copy, " ", &save); w;
         w = strtok_r(NULL, " ", &save)) {
        char *equals = strchr(w, '=');
        if (!equals)
            return fail("[matrix] %s: %s is not key=value", a->key, w);
        *equals = '\0';
        if (add_word(&c->words, w, equals + 1))
            return -1;
    }
    return 0;
}

// Adds a value of an axis to a cell: "8" or "workers=2 batch=8", and the
// settings in parentheses behind it.
static int add_value(struct cell *c, const struct axis *a, int i)
{
    const char *value = a->values[i];
    size_t at = strlen(c->name);
    bool several = strchr(value, '=') != NULL;
    if (text_into(c->name + at, EXP_NAME - at, "%s%s%s%s", at ? " " : "",
                  several ? "" : a->key, several ? "" : "=", value))
        return -1;
    return (several ? add_several(c, a, value)
                    : add_word(&c->words, a->key, value)) ||
                   add_several(c, a, a->hidden[i])
               ? -1
               : 0;
}

static int blame_cell(const struct cell *c)
{
    char why[512];
    snprintf(why, sizeof why, "%s", fail_message());
    return fail("cell %s: %s", c->name, why);
}

static int check_cell(const struct cell *c)
{
    struct run r;
    config_defaults(&r);
    for (int i = 0; i < c->words.n; i++) {
        char *word = (char *)(uintptr_t)c->words.at[i];
        if (config_parse(&r, 1, &word))
            return blame_cell(c);
    }
    return config_settle_batch(&r, r.workers) ? blame_cell(c) : 0;
}

void experiment_clean(char *name)
{
    for (char *p = name; *p; p++)
        if (strchr(",/\\'\"`$", *p) || (unsigned char)*p < ' ')
            *p = '_';
}

// Makes cell number k: the named cell varies slowest, the last axis fastest.
static int make_cell(const struct experiment *e, int k, struct cell *c)
{
    int digit[EXP_AXES];
    *c = (struct cell){0};
    for (int a = e->naxes - 1; a >= 0; a--) {
        digit[a] = k % e->axes[a].n;
        k /= e->axes[a].n;
    }
    if (add_words(&c->words, &e->base))
        return -1;
    if (e->nnamed) {
        strcpy(c->name, e->named[k].name);
        c->peer = e->named[k].peer;
    }
    for (int a = 0; a < e->naxes; a++)
        if (add_value(c, &e->axes[a], digit[a]))
            return -1;
    if (e->nnamed && add_words(&c->words, &e->named[k].words))
        return -1;
    if (!*c->name)
        strcpy(c->name, "only");
    experiment_clean(c->name);
    return check_cell(c);
}

// Sets the figures to draw if figures= is empty. figures=none draws none.
static void default_figures(struct experiment *e)
{
    if (*e->figures)
        return;
    strcpy(e->figures, "speedup throughput loss_seconds memory breakdown");
    if (e->naxes == 2)
        strcat(e->figures, " heatmap");
    else if (e->naxes)
        strcat(e->figures, " sweep");
}

// Checks that cell k has a name of its own: it becomes the name of a folder.
static int check_name(const struct experiment *e, int k)
{
    for (int i = 0; i < k; i++)
        if (!strcmp(e->cells[i].name, e->cells[k].name))
            return fail("cells %d and %d would both be called %s; try: names "
                        "and values that differ in letters or digits",
                        i + 1, k + 1, e->cells[k].name);
    return 0;
}

static int expand(struct experiment *e)
{
    long n = e->nnamed ? e->nnamed : 1;
    for (int a = 0; a < e->naxes; a++)
        n *= e->axes[a].n;
    if (n > EXP_CELLS)
        return fail("%ld cells are more than %d", n, EXP_CELLS);
    e->ncells = (int)n;
    for (int k = 0; k < e->ncells; k++)
        if (make_cell(e, k, &e->cells[k]) || check_name(e, k))
            return -1;
    return 0;
}

static int read_ini(struct experiment *e, const char *path)
{
    const char *slash = strrchr(path, '/');
    if (text_into(e->name, sizeof e->name, "%s", slash ? slash + 1 : path))
        return -1;
    char *dot = strrchr(e->name, '.');
    if (dot)
        *dot = '\0';
    e->repeat = 3;
    fail("not an INI file");
    int line = ini_parse(path, take, e);
    if (line < 0)
        return fail("%s: %s; try: the path of an experiment, as in "
                    "experiments/paper.ini",
                    path, strerror(errno));
    if (line > 0) {
        char why[512];
        snprintf(why, sizeof why, "%s", fail_message());
        return fail("%s:%d: %s", path, line, why);
    }
    if (!e->keys)
        return fail("%s: no key=value line, so it is no experiment", path);
    return 0;
}

int experiment_open(struct experiment **out, const char *path, int nwords,
                    char *const *words)
{
    struct experiment *e = mem_alloc(1, sizeof *e);
    int rc = e ? read_ini(e, path) : -1;
    for (int i = 0; !rc && i < nwords; i++)
        rc = override(e, words[i]);
    if (!rc)
        default_figures(e);
    if (!rc)
        rc = expand(e) || experiment_baselines(e) || figures_check(e->figures)
                 ? -1
                 : 0;
    if (rc)
        mem_free(e);
    else
        *out = e;
    return rc;
}

void experiment_close(struct experiment **e)
{
    mem_free(*e);
    *e = NULL;
}
