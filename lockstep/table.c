// table.c - writes results as CSV, for plots, spreadsheets and pandas.
//
//     file          a row for each    columns
//     runs.csv      run               each setting and each metric
//     table.csv     cell              median, least and most of each metric
//     shares.csv    cell              share of a step for each kind of time
//     memory.csv    cell              peak memory, and its predicted parts
//     verbs.csv     cell              bytes by verb, measured and by the law
//     workers.csv   cell and worker   utilisation
//     curves.csv    cell and step     loss (mean of workers, first repeat)

#include "lockstep/study.h"

#include "base/base.h"
#include "config/backends.h"
#include "config/keys.h"
#include "lockstep/csv.h"

#include <math.h>
#include <string.h>

static const char settings[] =
    "backend,precision,wire,net,workers,servers,global_batch,oversubscribed";

// Keys that the experiment sets, other than those in `settings`.
struct keys {
    int n;
    char at[EXP_WORDS][64];
};

static bool has_column(const struct keys *keys, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = settings; (p = strstr(p, name)); p++)
        if ((p == settings || p[-1] == ',') && (!p[n] || p[n] == ','))
            return true;
    for (int i = 0; i < keys->n; i++)
        if (!strcmp(keys->at[i], name))
            return true;
    return !strcmp(name, "sync"); // its column is "backend"
}

static void find_keys(const struct study *s, struct keys *keys)
{
    char name[sizeof keys->at[0]];
    keys->n = 0;
    for (int c = 0; c < s->exp->ncells; c++) {
        const struct word_list *words = &s->exp->cells[c].words;
        for (int i = 0; i < words->n && keys->n < EXP_WORDS; i++) {
            const char *word = words->at[i];
            snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
            if (!has_column(keys, name))
                strcpy(keys->at[keys->n++], name);
        }
    }
}

static void put_names(FILE *f, const struct keys *keys)
{
    fprintf(f, ",%s", settings);
    for (int i = 0; i < keys->n; i++)
        fprintf(f, ",%s", keys->at[i]);
}

// Writes a word of a run.json. Commas and newlines become blanks: the file may
// have been written by another program.
static void put_word(FILE *f, const char *word)
{
    fputc(',', f);
    for (; *word; word++)
        fputc(*word == ',' || *word == '\n' ? ' ' : *word, f);
}

// Returns whether the run's backend reads this key; true if it is not a key of
// backends.
static bool is_read(const struct result *r, const char *key)
{
    const struct key *k = key_find(&run_keys, key);
    return !k || !k->backend || !r->row || backend_reads(r->row, key);
}

static void put_settings(FILE *f, const struct result *r,
                         const struct keys *keys)
{
    char value[256];
    put_word(f, r->backend);
    put_word(f, r->precision);
    put_word(f, r->wire);
    put_word(f, *r->net ? r->net : "unshaped");
    fprintf(f, ",%d,%d,%d,%d", r->world, r->servers, r->global_batch,
            r->oversubscribed);
    for (int i = 0; i < keys->n; i++) {
        result_setting(r, keys->at[i], value, sizeof value);
        put_word(f, is_read(r, keys->at[i]) ? value : "");
    }
}

static int write_runs(const struct study *s)
{
    struct keys keys;
    FILE *f = study_file(s, "runs.csv");
    if (!f)
        return -1;
    find_keys(s, &keys);
    fputs("cell,repeat", f);
    put_names(f, &keys);
    for (int m = 0; m < METRICS; m++)
        fprintf(f, ",%s", metric_names[m]);
    fputs("\n", f);
    for (int i = 0; i < s->nruns; i++) {
        const struct result *r = &s->runs[i];
        fputs(r->cell, f);
        fprintf(f, ",%d", r->repeat);
        put_settings(f, r, &keys);
        for (int m = 0; m < METRICS; m++)
            csv_put(f, r->value[m]);
        fputs("\n", f);
    }
    return study_file_end(s, f, "runs.csv");
}

static int write_table(const struct study *s)
{
    struct keys keys;
    FILE *f = study_file(s, "table.csv");
    if (!f)
        return -1;
    find_keys(s, &keys);
    fputs("cell,n", f);
    put_names(f, &keys);
    fputs(",target_loss_nats", f);
    for (int m = 0; m < METRICS; m++)
        fprintf(f, ",%s,%s_least,%s_most", metric_names[m], metric_names[m],
                metric_names[m]);
    fputs("\n", f);
    for (int c = 0; c < s->exp->ncells; c++) {
        const struct result *r = study_first(s, c);
        int n;
        if (!r)
            continue;
        study_range(s, c, 0, &n);
        fputs(r->cell, f);
        fprintf(f, ",%d", n);
        put_settings(f, r, &keys);
        csv_put(f, s->target);
        for (int m = 0; m < METRICS; m++) {
            struct range v = study_range(s, c, m, &n);
            csv_put(f, v.median);
            csv_put(f, v.least);
            csv_put(f, v.most);
        }
        fputs("\n", f);
    }
    return study_file_end(s, f, "table.csv");
}

// Returns the share of a kind, the median of the cell's repeats.
static double median_share(const struct study *s, int cell, int kind)
{
    double v[EXP_REPEATS];
    int n = 0;
    for (int i = 0; i < s->nruns && n < EXP_REPEATS; i++)
        if (s->cell_of[i] == cell)
            v[n++] = s->runs[i].share[kind];
    return range_of(v, n).median;
}

static int write_shares(const struct study *s)
{
    FILE *f = study_file(s, "shares.csv");
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
        csv_put(f, study_range(s, c, METRIC_STEP_S, &n).median);
        for (int k = 0; k < RESULT_KINDS; k++)
            csv_put(f, median_share(s, c, k));
        fputs("\n", f);
    }
    return study_file_end(s, f, "shares.csv");
}

static int write_memory(const struct study *s)
{
    FILE *f = study_file(s, "memory.csv");
    if (!f)
        return -1;
    fputs("cell,backend,workers,peak_bytes", f);
    for (int k = 0; k < RESULT_PARTS; k++)
        fprintf(f, ",%s_bytes", part_names[k]);
    fputs("\n", f);
    for (int c = 0; c < s->exp->ncells; c++) {
        const struct result *r = study_first(s, c);
        int n;
        if (!r)
            continue;
        fprintf(f, "%s,%s,%d", r->cell, r->backend, r->world);
        csv_put(f, study_range(s, c, METRIC_MEMORY, &n).median);
        for (int k = 0; k < RESULT_PARTS; k++)
            csv_put(f, r->part[k]);
        fputs("\n", f);
    }
    return study_file_end(s, f, "memory.csv");
}

static int write_verbs(const struct study *s)
{
    FILE *f = study_file(s, "verbs.csv");
    if (!f)
        return -1;
    fputs("cell,backend,workers", f);
    for (int v = 0; v < RESULT_VERBS; v++)
        fprintf(f, ",%s_bytes,law_%s_bytes", result_verb(v), result_verb(v));
    fputs("\n", f);
    for (int c = 0; c < s->exp->ncells; c++) {
        const struct result *r = study_first(s, c);
        if (!r)
            continue;
        fprintf(f, "%s,%s,%d", r->cell, r->backend, r->world);
        for (int v = 0; v < RESULT_VERBS; v++) {
            csv_put(f, isnan(r->sent[v]) ? 0 : r->sent[v]);
            csv_put(f, r->law[v]);
        }
        fputs("\n", f);
    }
    return study_file_end(s, f, "verbs.csv");
}

static int write_workers(const struct study *s)
{
    FILE *f = study_file(s, "workers.csv");
    if (!f)
        return -1;
    fputs("cell,backend,workers,worker,utilisation,oversubscribed,gpu_comm\n",
          f);
    for (int c = 0; c < s->exp->ncells; c++) {
        const struct result *r = study_first(s, c);
        for (int w = 0; r && w < r->world; w++) {
            fputs(r->cell, f);
            fprintf(f, ",%s,%d,%d", r->backend, r->world, w);
            csv_put(f, study_util(s, c, w));
            fprintf(f, ",%d", r->oversubscribed);
            csv_put(f, study_comm(s, c, w));
            fputs("\n", f);
        }
    }
    return study_file_end(s, f, "workers.csv");
}

static void put_curve(FILE *f, const struct result *r)
{
    for (int i = 0; i < r->curve.n; i++) {
        const struct curve_point *p = &r->curve.at[i];
        fprintf(f, "%s,%s,%d,%d", r->cell, r->backend, r->oversubscribed,
                p->step);
        fprintf(f, ",%.0f", p->tokens);
        csv_put(f, p->time_s);
        csv_put(f, p->loss);
        csv_put(f, p->val_loss);
        csv_put(f, p->train_s);
        csv_put(f, p->smooth);
        csv_put(f, p->restarts);
        fputs("\n", f);
    }
}

static int write_curves(const struct study *s)
{
    FILE *f = study_file(s, "curves.csv");
    if (!f)
        return -1;
    fputs("cell,backend,oversubscribed,step,tokens,time_s,loss,val_loss,"
          "train_s,loss_smooth,restarts\n",
          f);
    for (int c = 0; c < s->exp->ncells; c++) {
        const struct result *r = study_first(s, c);
        if (r)
            put_curve(f, r);
    }
    return study_file_end(s, f, "curves.csv");
}

int study_tables(const struct study *s)
{
    return write_runs(s) || write_table(s) || write_shares(s) ||
                   write_memory(s) || write_verbs(s) || write_workers(s) ||
                   write_curves(s) || study_sweep(s) || study_text(s)
               ? -1
               : 0;
}
