// sweep.c - writes sweep.csv, for figures over one or two keys of [matrix].
//
// x is the last key of [matrix], y is the key before it. A series is a named
// cell with one value of each other key.

#include "lockstep/study.h"

#include "base/base.h"
#include "lockstep/csv.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static const enum metric shown[] = {METRIC_TOKENS_PER_S, METRIC_STEP_S,
                                    METRIC_SECONDS_TO, METRIC_BEST_VAL_LOSS};

enum { SHOWN = sizeof shown / sizeof *shown };

// Returns the cell's value of axis a, and removes that axis from the cell
// number *k.
static const char *value_of(const struct experiment *e, int a, int *k)
{
    int n = e->axes[a].n, i = *k % n;
    *k /= n;
    return e->axes[a].values[i];
}

static void put_text(FILE *f, const char *before, const char *text)
{
    char clean[EXP_NAME + EXP_WORD];
    snprintf(clean, sizeof clean, "%s", text);
    experiment_clean(clean);
    fprintf(f, "%s%s", before, clean);
}

static void put_cell(FILE *f, const struct study *s, int c)
{
    const struct experiment *e = s->exp;
    int k = c, n, last = e->naxes - 1;
    const char *x = value_of(e, last, &k), *y = "";
    char rest[EXP_NAME] = "";
    if (last > 0)
        y = value_of(e, last - 1, &k);
    for (int a = last - 2; a >= 0; a--) {
        size_t at = strlen(rest);
        snprintf(rest + at, sizeof rest - at, " %s=%s", e->axes[a].key,
                 value_of(e, a, &k));
    }
    put_text(f, "", e->nnamed ? e->named[k].name : "");
    put_text(f, "", rest);
    put_text(f, ",", e->axes[last].key);
    put_text(f, ",", last > 0 ? e->axes[last - 1].key : "");
    put_text(f, ",", x);
    put_text(f, ",", y);
    for (int i = 0; i < SHOWN; i++) {
        struct range v = study_range(s, c, shown[i], &n);
        csv_put(f, v.median);
        csv_put(f, v.least);
        csv_put(f, v.most);
    }
    fputs("\n", f);
}

int study_sweep(const struct study *s)
{
    char path[CONFIG_PATH];
    if (!s->exp->naxes) { // a file of this name is not of this experiment
        if (text_into(path, sizeof path, "%s/sweep.csv", s->out))
            return -1;
        return unlink(path) && errno != ENOENT
                   ? fail("%s: %s", path, strerror(errno))
                   : 0;
    }
    FILE *f = study_file(s, "sweep.csv");
    if (!f)
        return -1;
    fputs("series,x_key,y_key,x,y", f);
    for (int i = 0; i < SHOWN; i++)
        fprintf(f, ",%s,%s_least,%s_most", metric_names[shown[i]],
                metric_names[shown[i]], metric_names[shown[i]]);
    fputs("\n", f);
    for (int c = 0; c < s->exp->ncells; c++)
        if (study_first(s, c))
            put_cell(f, s, c);
    return study_file_end(s, f, "sweep.csv");
}
