// table_text.c - writes table.txt: the results of table.csv, for reading.
//
// It has two or three blocks with a row for each cell: speed, results and, for
// pipelines, how long stages wait.

#include "lockstep/study.h"

#include <math.h>
#include <string.h>

enum { SHOWN = 8 }; // workers whose utilisation fits a line

static const double mib = 1048576;

struct text {
    FILE *f;
    const struct study *s;
    int width;      // of a cell's name
    int workers;    // the most of any cell
    bool repeats;   // some cell was run more than once
    bool speedups;  // there is a baseline
    bool validated; // there is a validation loss
    bool stages;    // some cell has stages
};

static void put_percent(FILE *f, double share, int width)
{
    if (isnan(share))
        fprintf(f, " %*s", width + 1, "-");
    else
        fprintf(f, " %*.0f%%", width, 100 * share);
}

static void put_number(FILE *f, double v, int width, int decimals)
{
    if (isnan(v))
        fprintf(f, "  %*s", width, "-");
    else
        fprintf(f, "  %*.*f", width, decimals, v);
}

// Writes the median, then least .. most if the table has columns for them.
static void put_range(const struct text *t, int c, enum metric m, int width,
                      int decimals)
{
    int n;
    struct range v = study_range(t->s, c, m, &n);
    put_number(t->f, v.median, width, decimals);
    if (!t->repeats)
        return;
    if (n > 1 && !isnan(v.least))
        fprintf(t->f, "  %*.*f .. %-*.*f", width, decimals, v.least, width,
                decimals, v.most);
    else
        fprintf(t->f, "  %*s", 2 * width + 4, "");
}

static void put_head(const struct text *t, const char *name, int width)
{
    fprintf(t->f, "  %*s", width, name);
    if (t->repeats)
        fprintf(t->f, "  %*s .. %-*s", width, "least", width, "most");
}

// Writes the utilisation of each worker, or their range if a line cannot show
// all workers.
static void put_workers(const struct text *t, int c, int world)
{
    if (t->workers <= SHOWN) {
        for (int w = 0; w < t->workers; w++)
            put_percent(t->f, study_util(t->s, c, w), 3);
        return;
    }
    double least = NAN, most = NAN;
    for (int w = 0; w < world; w++) {
        double u = study_util(t->s, c, w);
        least = fmin(least, u);
        most = fmax(most, u);
    }
    put_percent(t->f, least, 5);
    fputs(" ..", t->f);
    put_percent(t->f, most, 3);
}

static void put_speed(const struct text *t, int c)
{
    const struct study *s = t->s;
    const struct result *r = study_first(s, c);
    int n;
    if (!r) {
        fprintf(t->f, "%-*s  not run\n", t->width, s->exp->cells[c].name);
        return;
    }
    fprintf(t->f, "%-*s %7d %7d  ", t->width, r->cell, r->world, r->servers);
    put_workers(t, c, r->world);
    put_percent(t->f, study_range(s, c, METRIC_UTIL_TOTAL, &n).median, 5);
    put_range(t, c, METRIC_TOKENS_PER_S, 8, 0);
    if (t->speedups)
        put_range(t, c, METRIC_SPEEDUP, 8, 2);
    put_number(t->f, 1000 * study_range(s, c, METRIC_STEP_S, &n).median, 8, 1);
    fprintf(t->f, "%s%s%s%s%s%s%s\n", *r->net ? "  net=" : "", r->net,
            r->oversubscribed ? "  oversubscribed" : "",
            *r->pace ? "  slept: pace=" : "", r->pace,
            *r->mistakes ? "  WRONG: " : "", r->mistakes);
}

static void speed_block(const struct text *t)
{
    fprintf(t->f, "%-*s %7s %7s  ", t->width, "cell", "workers", "servers");
    for (int w = 0; t->workers <= SHOWN && w < t->workers; w++)
        fprintf(t->f, "   u%d", w);
    if (t->workers > SHOWN)
        fprintf(t->f, " %6s .. %-4s", "least", "most");
    fprintf(t->f, " %6s", "total");
    put_head(t, "tokens/s", 8);
    if (t->speedups)
        put_head(t, "speed-up", 8);
    fprintf(t->f, "  %8s\n", "step ms");
    for (int c = 0; c < t->s->exp->ncells; c++)
        put_speed(t, c);
}

static void put_outcome(const struct text *t, int c)
{
    const struct result *r = study_first(t->s, c);
    int n;
    if (!r)
        return;
    fprintf(t->f, "%-*s", t->width, r->cell);
    if (!isnan(t->s->target)) {
        put_range(t, c, METRIC_SECONDS_TO, 9, 2);
        put_number(t->f, study_range(t->s, c, METRIC_TOKENS_TO, &n).median, 9,
                   0);
    }
    put_number(t->f, study_range(t->s, c, METRIC_TRAIN_LOSS, &n).median, 7, 4);
    if (t->validated)
        put_range(t, c, METRIC_BEST_VAL_LOSS, 9, 4);
    put_number(t->f, study_range(t->s, c, METRIC_MEMORY, &n).median / mib, 10,
               1);
    put_number(t->f,
               study_range(t->s, c, METRIC_SERVER_MEMORY, &n).median / mib, 10,
               1);
    fputs("\n", t->f);
}

static void outcome_block(const struct text *t)
{
    char name[32];
    snprintf(name, sizeof name, "s to %.2f", t->s->target);
    fprintf(t->f, "\n%-*s", t->width, "cell");
    if (!isnan(t->s->target)) {
        put_head(t, name, 9);
        fprintf(t->f, "  %9s", "tokens to");
    }
    fprintf(t->f, "  %7s", "loss");
    if (t->validated)
        put_head(t, "best val.", 9);
    fprintf(t->f, "  %10s  %10s\n", "worker MiB", "server MiB");
    for (int c = 0; c < t->s->exp->ncells; c++)
        put_outcome(t, c);
}

// Writes how long stages wait, for cells with stages. Returns whether there
// were any.
static bool bubble_block(const struct text *t)
{
    static const struct {
        const char *name;
        enum metric metric;
        double times;
    } columns[] = {{"bubble %", METRIC_BUBBLE, 100},
                   {"law %", METRIC_BUBBLE_LAW, 100},
                   {"timetable %", METRIC_BUBBLE_TIMETABLE, 100},
                   {"step ms", METRIC_STEP_S, 1000},
                   {"timetable ms", METRIC_STEP_TIMETABLE, 1000}};
    const size_t ncolumns = sizeof columns / sizeof *columns;
    bool any = false;
    for (int c = 0; c < t->s->exp->ncells; c++) {
        const struct result *r = study_first(t->s, c);
        int n;
        if (!r || r->stages < 2)
            continue;
        if (!any)
            fprintf(t->f, "\n%-*s  %6s", t->width, "cell", "stages");
        for (size_t k = 0; !any && k < ncolumns; k++)
            fprintf(t->f, "  %12s", columns[k].name);
        fprintf(t->f, "%s%-*s  %6d", any ? "" : "\n", t->width, r->cell,
                r->stages);
        for (size_t k = 0; k < ncolumns; k++)
            put_number(t->f,
                       columns[k].times *
                           study_range(t->s, c, columns[k].metric, &n).median,
                       12, 1);
        fputs("\n", t->f);
        any = true;
    }
    return any;
}

static void notes(const struct text *t)
{
    fputs("\n", t->f);
    if (t->repeats)
        fputs("All values are medians of a cell's repeats.\n", t->f);
    fputs(t->workers > SHOWN
              ? "least .. most: the utilisation of the least and most utilised "
                "worker"
              : "u0: the utilisation of worker 0, and so on for u1",
          t->f);
    fputs(". Utilisation is the\nshare of a worker's time in forward, backward "
          "and update. total: the sum over all workers.\n"
          "tokens/s: the tokens of a step, divided by the time of the median "
          "step.\n",
          t->f);
    if (t->speedups)
        fprintf(t->f, "speed-up: tokens/s, divided by those of %s%s.\n",
                t->s->exp->baseline,
                t->repeats ? "; least .. most compare runs of the same repeat"
                           : "");
    if (!isnan(t->s->target))
        fprintf(t->f,
                "s to %.2f, tokens to: until the mean training loss of %d "
                "steps is %.2f; -: not reached.\n",
                t->s->target, CURVE_MEAN, t->s->target);
    fputs("worker MiB, server MiB: the highest peak of any worker, of any "
          "server (-: no server).\n",
          t->f);
    if (t->stages)
        fputs("bubble: the share of a step in which a stage waits for other "
              "stages. law: the same for\nequal stages. timetable: the same "
              "with each stage's measured times, but no time for messages.\n",
              t->f);
}

int study_text(const struct study *s)
{
    struct text t = {.s = s,
                     .width = 8,
                     .repeats = study_repeats(s),
                     .speedups = *s->exp->baseline != '\0',
                     .f = study_file(s, "table.txt")};
    if (!t.f)
        return -1;
    for (int c = 0; c < s->exp->ncells; c++) {
        int n = (int)strlen(s->exp->cells[c].name);
        t.width = n > t.width ? n : t.width;
    }
    for (int i = 0; i < s->nruns; i++) {
        const struct result *r = &s->runs[i];
        t.workers = r->world > t.workers ? r->world : t.workers;
        t.validated |= !isnan(r->value[METRIC_BEST_VAL_LOSS]);
    }
    speed_block(&t);
    outcome_block(&t);
    t.stages = bubble_block(&t);
    notes(&t);
    return study_file_end(s, t.f, "table.txt");
}
