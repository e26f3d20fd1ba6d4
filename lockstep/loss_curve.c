// loss_curve.c - reads steps.csv: the rows of all ranks of a step become one
// point of the curve.

#include "lockstep/loss_curve.h"

#include "base/base.h"
#include "config/config.h"
#include "lockstep/csv.h"

#include <math.h>
#include <string.h>

struct columns {
    int step, tokens, time, took, loss, val, restarts;
};

// Returns the mean of a column over the ranks whose cell is not empty; NaN if
// all are empty.
static double mean_of(const struct csv *csv, int from, int to, int col)
{
    double sum = 0;
    int n = 0;
    for (int i = from; i < to; i++) {
        double v = csv_number(csv, i, col);
        if (isnan(v))
            continue;
        sum += v;
        n++;
    }
    return n ? sum / n : NAN;
}

static void smooth(struct curve *c)
{
    for (int i = 0; i < c->n; i++) {
        int from = i < CURVE_MEAN ? 0 : i - CURVE_MEAN + 1;
        double sum = 0;
        for (int k = from; k <= i; k++)
            sum += c->at[k].loss;
        c->at[i].smooth = sum / (i - from + 1);
    }
}

// Returns the largest value of a column over the ranks. The numbers of restarts
// differ by rank in an elastic job, which starts single workers again.
static double most_of(const struct csv *csv, int from, int to, int column)
{
    double most = NAN;
    for (int i = from; i < to; i++)
        most = fmax(most, csv_number(csv, i, column));
    return most;
}

// Fills the points. The rows of a step follow each other.
static void fill(struct curve *c, const struct csv *csv,
                 const struct columns *k)
{
    double train_s = 0;
    for (int i = 0, end; i < csv->nrows; i = end) {
        const char *step = csv_text(csv, i, k->step);
        for (end = i; end < csv->nrows; end++)
            if (strcmp(csv_text(csv, end, k->step), step))
                break;
        train_s += mean_of(csv, i, end, k->took) * 1e-6;
        c->at[c->n++] = (struct curve_point){
            .step = (int)csv_number(csv, i, k->step),
            .tokens = csv_number(csv, i, k->tokens),
            .time_s = csv_number(csv, i, k->time),
            .train_s = train_s,
            .loss = mean_of(csv, i, end, k->loss),
            .val_loss = mean_of(csv, i, end, k->val),
            .restarts = most_of(csv, i, end, k->restarts),
        };
    }
    smooth(c);
}

int curve_read(struct curve *c, const char *dir)
{
    char path[CONFIG_PATH];
    struct csv csv;
    if (text_into(path, sizeof path, "%s/steps.csv", dir) ||
        csv_open(&csv, path))
        return -1;
    struct columns k = {
        csv_column(&csv, "step"),     csv_column(&csv, "tokens"),
        csv_column(&csv, "time_s"),   csv_column(&csv, "t_step_us"),
        csv_column(&csv, "loss"),     csv_column(&csv, "val_loss"),
        csv_column(&csv, "restarts"),
    };
    c->n = 0;
    c->at = mem_alloc((size_t)csv.nrows + 1, sizeof *c->at);
    if (c->at)
        fill(c, &csv, &k);
    csv_close(&csv);
    return c->at ? 0 : -1;
}

void curve_free(struct curve *c)
{
    mem_free(c->at);
    *c = (struct curve){0};
}

double curve_lowest(const struct curve *c)
{
    double least = NAN;
    for (int i = 0; i < c->n; i++)
        least = fmin(least, c->at[i].smooth);
    return least;
}

const struct curve_point *curve_reached(const struct curve *c, double target)
{
    for (int i = 0; i < c->n; i++)
        if (c->at[i].smooth <= target)
            return &c->at[i];
    return NULL;
}
