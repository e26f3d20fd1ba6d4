// measure.c - computes metrics that compare runs: speed-up, and time to a loss.
//
// Without target_loss= the target is the least loss that every run reaches,
// rounded up to a hundredth. So each cell has a time.

#include "lockstep/study.h"

#include <math.h>

const struct result *study_run(const struct study *s, int cell, int k)
{
    for (int i = 0; i < s->nruns; i++)
        if (s->cell_of[i] == cell && s->runs[i].repeat == k)
            return &s->runs[i];
    return NULL;
}

static double common_target(const struct study *s)
{
    double target = NAN;
    for (int i = 0; i < s->nruns; i++)
        target = fmax(target, curve_lowest(&s->runs[i].curve));
    return ceil(100 * target) / 100;
}

static void reach(struct result *r, double target)
{
    const struct curve_point *p = curve_reached(&r->curve, target);
    r->value[METRIC_SECONDS_TO] = p ? p->train_s : NAN;
    r->value[METRIC_TOKENS_TO] = p ? p->tokens : NAN;
}

static double rate(const struct result *r)
{
    return r ? r->value[METRIC_TOKENS_PER_S] : NAN;
}

void study_measure(struct study *s)
{
    s->target = s->exp->target > 0 ? s->exp->target
                : s->nruns > 1     ? common_target(s)
                                   : NAN;
    for (int i = 0; i < s->nruns; i++) {
        struct result *r = &s->runs[i];
        int base = s->exp->cells[s->cell_of[i]].baseline;
        reach(r, s->target);
        r->value[METRIC_SPEEDUP] =
            rate(r) / (base < 0 ? NAN : rate(study_run(s, base, r->repeat)));
    }
}

static struct range plain(const struct study *s, int cell, enum metric m,
                          int *n)
{
    double v[EXP_REPEATS];
    *n = 0;
    for (int i = 0; i < s->nruns && *n < EXP_REPEATS; i++)
        if (s->cell_of[i] == cell)
            v[(*n)++] = s->runs[i].value[m];
    return range_of(v, *n);
}

struct range study_ratio(const struct study *s, int cell, int base,
                         enum metric m)
{
    double v[EXP_REPEATS];
    int n = 0, ignored;
    for (int i = 0; i < s->nruns && n < EXP_REPEATS; i++) {
        const struct result *r = &s->runs[i];
        if (s->cell_of[i] != cell)
            continue;
        const struct result *other = study_run(s, base, r->repeat);
        v[n++] = other ? r->value[m] / other->value[m] : NAN;
    }
    struct range ratio = range_of(v, n);
    ratio.median =
        plain(s, cell, m, &ignored).median / plain(s, base, m, &ignored).median;
    return ratio;
}

struct range study_range(const struct study *s, int cell, enum metric m, int *n)
{
    int base = s->exp->cells[cell].baseline;
    struct range v = plain(s, cell, m, n);
    if (m == METRIC_SPEEDUP && base >= 0)
        v = study_ratio(s, cell, base, METRIC_TOKENS_PER_S);
    return v;
}

static double of_worker(const struct study *s, int cell, int worker, bool comm)
{
    double v[EXP_REPEATS];
    int n = 0;
    for (int i = 0; i < s->nruns && n < EXP_REPEATS; i++) {
        const struct result *r = &s->runs[i];
        if (s->cell_of[i] == cell && r->util && worker < r->world)
            v[n++] = comm ? r->comm[worker] : r->util[worker];
    }
    return range_of(v, n).median;
}

double study_util(const struct study *s, int cell, int worker)
{
    return of_worker(s, cell, worker, false);
}

double study_comm(const struct study *s, int cell, int worker)
{
    return of_worker(s, cell, worker, true);
}
