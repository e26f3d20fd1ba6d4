// compare.c - did all runs train the same thing?
//
// Runs are comparable where they had the same data, global batch, formats and
// the same consistency. They must then show the same losses within rounding.

#include "lockstep/commands.h"

#include "base/base.h"
#include "lockstep/csv.h"
#include "lockstep/study.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

// Of the loss, relative, over the first SAME_STEPS: later, rounding has grown.
static const double same_within = 2e-3;
enum { SAME_STEPS = 20 };

struct verdict {
    char *text;
    size_t size, at;
    int differences;
};

static void say(struct verdict *v, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static void say(struct verdict *v, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(v->text + v->at, v->size - v->at, fmt, ap);
    va_end(ap);
    v->at += n < 0 ? 0 : (size_t)n;
    if (v->at >= v->size)
        v->at = v->size - 1;
}

// The loss of a step, mean over ranks; returns how many steps were read.
static int read_losses(const struct study *s, int run, double *loss, int most)
{
    char folder[CONFIG_PATH], path[CONFIG_PATH];
    struct csv c;
    int count[SAME_STEPS] = {0}, n = 0;
    if (study_folder(s, s->cell_of[run], s->runs[run].repeat, folder) ||
        text_into(path, sizeof path, "%s/steps.csv", folder) ||
        csv_open(&c, path))
        return 0;
    int step = csv_column(&c, "step"), col = csv_column(&c, "loss");
    for (int i = 0; i < most; i++)
        loss[i] = 0;
    for (int i = 0; i < c.nrows; i++) {
        int k = atoi(csv_text(&c, i, step)) - 1;
        if (k < 0 || k >= most)
            continue;
        loss[k] += csv_number(&c, i, col);
        count[k]++;
        n = k + 1 > n ? k + 1 : n;
    }
    for (int i = 0; i < n; i++)
        loss[i] /= count[i];
    csv_close(&c);
    return n;
}

static bool same_task(const struct result *a, const struct result *b)
{
    return !strcmp(a->hash, b->hash) && a->global_batch == b->global_batch;
}

static bool same_formats(const struct result *a, const struct result *b)
{
    return !strcmp(a->precision, b->precision) && !strcmp(a->wire, b->wire) &&
           !strcmp(a->consistency, b->consistency);
}

// Over *steps, those that both have of the first SAME_STEPS.
static double farthest(const struct study *s, int i, int j, int *steps)
{
    double a[SAME_STEPS], b[SAME_STEPS], worst = 0;
    int n = read_losses(s, i, a, SAME_STEPS);
    int m = read_losses(s, j, b, SAME_STEPS);
    *steps = n < m ? n : m;
    for (int k = 0; k < *steps; k++)
        worst = fmax(worst, fabs(a[k] - b[k]) / fabs(a[k]));
    return worst;
}

// Every first run against the earliest of the same task.
static void compare_losses(const struct study *s, struct verdict *v)
{
    for (int i = 0; i < s->nruns; i++) {
        int reference = 0;
        while (reference < i &&
               !(same_task(&s->runs[i], &s->runs[reference]) &&
                 same_formats(&s->runs[i], &s->runs[reference])))
            reference++;
        if (reference == i ||
            (i && s->cell_of[i] == s->cell_of[i - 1])) // repeats: reruns
            continue;
        int steps;
        double far = farthest(s, i, reference, &steps);
        bool same = far <= same_within;
        if (*s->runs[i].consistency) {
            say(v,
                "  %s: %s does not promise the losses of %s (they differ by "
                "at most %.1e of their value)\n",
                s->runs[i].cell, s->runs[i].consistency,
                s->runs[reference].cell, far);
            continue;
        }
        v->differences += !same;
        say(v, "  %s %s %s: the losses of the first %d steps ", s->runs[i].cell,
            same ? "=" : "DIFFERS FROM", s->runs[reference].cell, steps);
        if (far > 0)
            say(v, "differ by at most %.1e of their value\n", far);
        else
            say(v, "are the same in every digit\n");
    }
}

static void compare_reruns(const struct study *s, struct verdict *v)
{
    for (int i = 1; i < s->nruns; i++) {
        if (s->cell_of[i] != s->cell_of[i - 1])
            continue;
        int steps;
        double far = farthest(s, i, i - 1, &steps);
        if (far > 0)
            say(v, "  %s: repeats %d and %d are %.1e apart\n", s->runs[i].cell,
                s->runs[i - 1].repeat, s->runs[i].repeat, far);
    }
}

int study_compare(const struct study *s, char *text, size_t size)
{
    struct verdict v = {.text = text, .size = size};
    int hashes = 1, batches = 1;
    *text = '\0';
    for (int i = 1; i < s->nruns; i++) {
        hashes += strcmp(s->runs[i].hash, s->runs[0].hash) != 0;
        batches += s->runs[i].global_batch != s->runs[0].global_batch;
    }
    if (s->nruns == 0)
        return 0;
    v.differences = hashes > 1;
    say(&v, "data: %s (hash %s)\n",
        hashes == 1 ? "the same for all runs" : "DIFFERS between runs",
        s->runs[0].hash);
    say(&v, "global batch: %s\n",
        batches == 1 ? "the same for all runs" : "differs by cell");
    say(&v, "compared are runs of the same batch, formats and consistency:\n");
    compare_losses(s, &v);
    compare_reruns(s, &v);
    say(&v, "%s\n",
        v.differences ? "NOT the same training everywhere: see above"
                      : "all comparable runs trained the same thing");
    return v.differences;
}

static void explain(FILE *f)
{
    fprintf(f, "lockstep compare DIR\n\nWhether all runs of an experiment "
               "trained the same thing: the same data, the same\nglobal batch, "
               "losses within rounding. Exit status 1 if not.\n");
}

static int compare(int nwords, char **words)
{
    char text[1 << 15];
    struct study *s;
    if (nwords > 1)
        return fail("compare: one folder, not also %s", words[1]);
    if (study_open(&s, words[0]))
        return -1;
    int differences = study_compare(s, text, sizeof text);
    fputs(text, stdout);
    study_close(&s);
    return differences ? 1 : 0;
}

const struct command command_compare = {
    .name = "compare",
    .words = "DIR",
    .help = "whether an experiment's runs trained the same thing",
    .explain = explain,
    .least = 1,
    .run = compare,
};
