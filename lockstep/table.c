// table.c - results as CSV for plots and spreadsheets, and as text for people.
//
//     runs.csv      a row a run: settings and metrics
//     table.csv     a row a cell: median, least and most of each metric
//     shares.csv    a row a cell and kind: where a step's time goes
//     workers.csv   a row a cell and worker: utilisation
//     curves.csv    a row a cell and step: loss (mean of workers, first repeat)

#include "lockstep/study.h"

#include "base/base.h"
#include "lockstep/csv.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static FILE *begin(const struct study *s, const char *name)
{
    char path[CONFIG_PATH];
    if (text_into(path, sizeof path, "%s/%s", s->out, name))
        return NULL;
    FILE *f = fopen(path, "we");
    if (!f)
        fail("%s: %s", path, strerror(errno));
    return f;
}

static int end(const struct study *s, FILE *f, const char *name)
{
    bool bad = ferror(f);
    if (fclose(f) || bad)
        return fail("%s/%s: %s", s->out, name, strerror(errno));
    return 0;
}

static void put_number(FILE *f, double v)
{
    if (isnan(v))
        fputs(",", f);
    else
        fprintf(f, ",%.7g", v);
}

static void put_settings(FILE *f, const struct result *r)
{
    fprintf(f, ",%s,%s,%s,%s,%d,%d,%d,%d", r->backend, r->precision, r->wire,
            *r->net ? r->net : "unshaped", r->world, r->servers,
            r->global_batch, r->oversubscribed);
}

static const char settings[] =
    ",backend,precision,wire,net,workers,servers,global_batch,oversubscribed";

static int write_runs(const struct study *s)
{
    FILE *f = begin(s, "runs.csv");
    if (!f)
        return -1;
    fprintf(f, "cell,repeat%s", settings);
    for (int m = 0; m < METRICS; m++)
        fprintf(f, ",%s", metric_names[m]);
    fputs("\n", f);
    for (int i = 0; i < s->nruns; i++) {
        const struct result *r = &s->runs[i];
        fputs(r->cell, f);
        fprintf(f, ",%d", r->repeat);
        put_settings(f, r);
        for (int m = 0; m < METRICS; m++)
            put_number(f, r->value[m]);
        fputs("\n", f);
    }
    return end(s, f, "runs.csv");
}

static int write_table(const struct study *s)
{
    FILE *f = begin(s, "table.csv");
    if (!f)
        return -1;
    fprintf(f, "cell,n%s", settings);
    for (int m = 0; m < METRICS; m++)
        fprintf(f, ",%s,%s_least,%s_most", metric_names[m], metric_names[m],
                metric_names[m]);
    fputs("\n", f);
    for (int c = 0; c < s->exp->ncells; c++) {
        const struct result *r = study_first(s, c);
        int n;
        if (!r)
            continue;
        study_spread(s, c, 0, &n);
        fputs(r->cell, f);
        fprintf(f, ",%d", n);
        put_settings(f, r);
        for (int m = 0; m < METRICS; m++) {
            struct spread v = study_spread(s, c, m, &n);
            put_number(f, v.median);
            put_number(f, v.least);
            put_number(f, v.most);
        }
        fputs("\n", f);
    }
    return end(s, f, "table.csv");
}

static double share_at(const struct result *r, int kind)
{
    return r->share[kind];
}

static double util_at(const struct result *r, int worker)
{
    return r->util && worker < r->world ? r->util[worker] : NAN;
}

// The median over a cell's repeats of the k-th number of each run.
static double median_of(const struct study *s, int cell,
                        double (*at)(const struct result *r, int k), int k)
{
    double v[1024];
    int n = 0;
    for (int i = 0; i < s->nruns && n < 1024; i++)
        if (s->cell_of[i] == cell)
            v[n++] = at(&s->runs[i], k);
    return spread_of(v, n).median;
}

static int write_shares(const struct study *s)
{
    FILE *f = begin(s, "shares.csv");
    if (!f)
        return -1;
    fputs("cell,backend,workers,oversubscribed,step_s", f);
    for (int k = 0; k < RESULT_KINDS; k++)
        fprintf(f, ",%s_share", kind_names[k]);
    fputs("\n", f);
    for (int c = 0; c < s->exp->ncells; c++) {
        const struct result *r = study_first(s, c);
        int n;
        if (!r)
            continue;
        fputs(r->cell, f);
        fprintf(f, ",%s,%d,%d", r->backend, r->world, r->oversubscribed);
        put_number(f, study_spread(s, c, METRIC_STEP_S, &n).median);
        for (int k = 0; k < RESULT_KINDS; k++)
            put_number(f, median_of(s, c, share_at, k));
        fputs("\n", f);
    }
    return end(s, f, "shares.csv");
}

static int write_workers(const struct study *s)
{
    FILE *f = begin(s, "workers.csv");
    if (!f)
        return -1;
    fputs("cell,backend,workers,worker,utilisation,oversubscribed\n", f);
    for (int c = 0; c < s->exp->ncells; c++) {
        const struct result *r = study_first(s, c);
        for (int w = 0; r && w < r->world; w++) {
            fputs(r->cell, f);
            fprintf(f, ",%s,%d,%d", r->backend, r->world, w);
            put_number(f, median_of(s, c, util_at, w));
            fprintf(f, ",%d\n", r->oversubscribed);
        }
    }
    return end(s, f, "workers.csv");
}

// The mean loss of the ranks of each step of one run.
static int copy_curve(FILE *f, const struct study *s, int c,
                      const struct result *r)
{
    char folder[CONFIG_PATH], path[CONFIG_PATH];
    struct csv csv;
    if (study_folder(s, c, r->repeat, folder) ||
        text_into(path, sizeof path, "%s/steps.csv", folder) ||
        csv_open(&csv, path))
        return -1;
    int step = csv_column(&csv, "step"), loss = csv_column(&csv, "loss"),
        val = csv_column(&csv, "val_loss"), tokens = csv_column(&csv, "tokens"),
        time = csv_column(&csv, "time_s"),
        restarts = csv_column(&csv, "restarts");
    for (int i = 0; i < csv.nrows;) {
        const char *now = csv_text(&csv, i, step);
        double sum = 0, val_sum = 0;
        int n = 0, first = i;
        for (; i < csv.nrows && !strcmp(csv_text(&csv, i, step), now); i++) {
            sum += csv_number(&csv, i, loss);
            val_sum += csv_number(&csv, i, val);
            n++;
        }
        fputs(r->cell, f);
        fprintf(f, ",%s,%d,%s,%s,%s", r->backend, r->oversubscribed, now,
                csv_text(&csv, first, tokens), csv_text(&csv, first, time));
        put_number(f, sum / n);
        put_number(f, val_sum / n);
        fprintf(f, ",%s\n", csv_text(&csv, first, restarts));
    }
    csv_close(&csv);
    return 0;
}

static int write_curves(const struct study *s)
{
    FILE *f = begin(s, "curves.csv");
    if (!f)
        return -1;
    int rc = 0;
    fputs("cell,backend,oversubscribed,step,tokens,time_s,loss,val_loss,"
          "restarts\n",
          f);
    for (int c = 0; !rc && c < s->exp->ncells; c++) {
        const struct result *r = study_first(s, c);
        if (r)
            rc = copy_curve(f, s, c, r);
    }
    return end(s, f, "curves.csv") || rc ? -1 : 0;
}

enum { SHOWN = 8 }; // workers whose utilisation fits a line

static int most_workers(const struct study *s)
{
    int most = 1;
    for (int i = 0; i < s->nruns; i++)
        most = s->runs[i].world > most ? s->runs[i].world : most;
    return most < SHOWN ? most : SHOWN;
}

static void put_percent(FILE *f, double share, int width)
{
    if (isnan(share))
        fprintf(f, " %*s", width + 1, "-");
    else
        fprintf(f, " %*.0f%%", width, 100 * share);
}

static void put_row(FILE *f, const struct study *s, int c, int width)
{
    const struct result *r = study_first(s, c);
    int n;
    if (!r) {
        fprintf(f, "%-*s  not run\n", width, s->exp->cells[c].name);
        return;
    }
    struct spread rate = study_spread(s, c, METRIC_TOKENS_PER_S, &n);
    fprintf(f, "%-*s %7d %7d  ", width, r->cell, r->world, r->servers);
    for (int w = 0; w < most_workers(s); w++) {
        double u = median_of(s, c, util_at, w);
        put_percent(f, u, 3);
    }
    put_percent(f, study_spread(s, c, METRIC_UTIL_TOTAL, &n).median, 5);
    fprintf(f, "  %9.0f", rate.median);
    if (n > 1)
        fprintf(f, "  %8.0f .. %-8.0f", rate.least, rate.most);
    else if (study_repeats(s))
        fprintf(f, "  %20s", "");
    fprintf(f, "  %8.1f  %7.4f%s%s%s\n",
            1000 * study_spread(s, c, METRIC_STEP_S, &n).median,
            study_spread(s, c, METRIC_TRAIN_LOSS, &n).median,
            *r->net ? "  net=" : "", r->net,
            r->oversubscribed ? "  oversubscribed" : "");
}

static int write_text(const struct study *s)
{
    int width = 8;
    FILE *f = begin(s, "table.txt");
    if (!f)
        return -1;
    for (int c = 0; c < s->exp->ncells; c++) {
        int n = (int)strlen(s->exp->cells[c].name);
        width = n > width ? n : width;
    }
    fprintf(f, "%-*s %7s %7s  ", width, "cell", "workers", "servers");
    for (int w = 0; w < most_workers(s); w++)
        fprintf(f, "   u%d", w);
    fprintf(f, " %6s  %9s%s  %8s  %7s\n", "total", "tokens/s",
            study_repeats(s) ? "     least .. most    " : "", "step ms",
            "loss");
    for (int c = 0; c < s->exp->ncells; c++)
        put_row(f, s, c, width);
    fputs("Medians; tokens/s is that of the median step. u0: utilisation of "
          "worker 0, the share of its time\nin forward, backward and update; "
          "total: of all workers, added up.\n",
          f);
    return end(s, f, "table.txt");
}

int study_tables(const struct study *s)
{
    return write_runs(s) || write_table(s) || write_shares(s) ||
                   write_workers(s) || write_curves(s) || write_text(s)
               ? -1
               : 0;
}
