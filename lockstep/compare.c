// compare.c - did all runs train the same thing?
//
// A loss depends on some of the settings (fair.c). Runs are comparable if these
// settings are equal. They must then have the same training losses within
// rounding. If the workers' parameters differ between two exchanges, validation
// losses just after an exchange are compared instead.

#include "lockstep/commands.h"

#include "base/base.h"
#include "config/backends.h"
#include "lockstep/result_law.h"
#include "lockstep/say.h"
#include "lockstep/study.h"

#include <math.h>
#include <string.h>

// The largest relative difference of two losses that count as the same. Only
// the first SAME_STEPS are compared: the effect of rounding grows with time.
static const double same_within = 2e-3;
enum { SAME_STEPS = 20 };

struct verdict {
    struct say out;
    int compared, differences;
};

static int least(int a, int b)
{
    return a < b ? a : b;
}

// Returns the largest relative difference of the training losses. *steps is the
// number of steps compared: those of the first SAME_STEPS that both runs have.
static double farthest(const struct study *s, int i, int j, int *steps)
{
    const struct curve *a = &s->runs[i].curve, *b = &s->runs[j].curve;
    double worst = 0;
    *steps = least(SAME_STEPS, least(a->n, b->n));
    for (int k = 0; k < *steps; k++)
        worst = fmax(worst,
                     fabs(a->at[k].loss - b->at[k].loss) / fabs(a->at[k].loss));
    return worst;
}

static bool is_apart(const struct result *r)
{
    return r->row && r->row->apart;
}

// Returns the relative difference of the first validation losses just after an
// exchange, when all workers have the same parameters. *step is its step. NaN:
// there are none.
static double farthest_validation(const struct study *s, int i, int j,
                                  int *step)
{
    const struct curve *a = &s->runs[i].curve, *b = &s->runs[j].curve;
    int every = result_round(&s->runs[i]);
    for (int k = 0; k < least(a->n, b->n); k++) {
        double x = a->at[k].val_loss, y = b->at[k].val_loss;
        *step = a->at[k].step;
        bool equal = *step % every == 0 || *step == s->runs[i].steps;
        if (!isnan(x) && !isnan(y) && equal)
            return fabs(x - y) / fabs(x);
    }
    return NAN;
}

// Returns the relative difference of two runs' losses, and in `what` which
// losses were compared.
static double distance(const struct study *s, int i, int j, char what[64])
{
    int n = 0;
    double far;
    if (is_apart(&s->runs[i])) {
        far = farthest_validation(s, i, j, &n);
        snprintf(what, 64, "the validation losses at step %d", n);
    } else {
        far = farthest(s, i, j, &n);
        snprintf(what, 64, "the losses of the first %d steps", n);
    }
    return far;
}

// Returns the earliest run that had the same training to do. If there is none,
// returns i, and in `why` how run i differs from run 0.
static int reference_of(const struct study *s, int i, char *why, size_t size)
{
    for (int j = 0; j < i; j++)
        if (!fair_difference(&s->runs[i], &s->runs[j], why, size))
            return j;
    fair_difference(&s->runs[i], &s->runs[0], why, size);
    return i;
}

// Compares the first run of each cell with the earliest comparable run.
static void compare_losses(const struct study *s, struct verdict *v)
{
    char why[512], what[64];
    for (int i = 1; i < s->nruns; i++) {
        if (s->cell_of[i] == s->cell_of[i - 1]) // see compare_reruns()
            continue;
        int reference = reference_of(s, i, why, sizeof why);
        const char *cell = s->runs[i].cell;
        if (*s->runs[i].pace) {
            say(&v->out, "  %s: slept (pace=%s), so it has no loss\n", cell,
                s->runs[i].pace);
            continue;
        }
        if (reference == i) {
            say(&v->out, "  %s: not comparable with %s, differs in %s\n", cell,
                s->runs[0].cell, why);
            continue;
        }
        double far = distance(s, i, reference, what);
        bool same = far <= same_within;
        if (isnan(far)) {
            say(&v->out,
                "  %s: its workers' parameters differ between exchanges, and "
                "no validation loss is just after an exchange; try: eval= a "
                "multiple of every=\n",
                cell);
            continue;
        }
        if (*s->runs[i].consistency) {
            say(&v->out,
                "  %s: %s does not promise the losses of %s (they differ by "
                "at most %.1e of their value)\n",
                cell, s->runs[i].consistency, s->runs[reference].cell, far);
            continue;
        }
        v->compared++;
        v->differences += !same;
        say(&v->out, "  %s %s %s: %s ", cell, same ? "=" : "DIFFERS FROM",
            s->runs[reference].cell, what);
        if (far > 0)
            say(&v->out, "differ by at most %.1e of their value\n", far);
        else
            say(&v->out, "are the same in every digit\n");
    }
}

static void compare_reruns(const struct study *s, struct verdict *v)
{
    for (int i = 1; i < s->nruns; i++) {
        if (s->cell_of[i] != s->cell_of[i - 1])
            continue;
        char what[64];
        double far = distance(s, i, i - 1, what);
        v->compared++;
        if (far > 0)
            say(&v->out, "  %s: repeats %d and %d are %.1e apart\n",
                s->runs[i].cell, s->runs[i - 1].repeat, s->runs[i].repeat, far);
    }
}

int study_compare(const struct study *s, char *text, size_t size)
{
    struct verdict v = {.out = {.text = text, .size = size}};
    int hashes = 1, batches = 1;
    *text = '\0';
    for (int i = 1; i < s->nruns; i++) {
        hashes += strcmp(s->runs[i].hash, s->runs[0].hash) != 0;
        batches += s->runs[i].global_batch != s->runs[0].global_batch;
    }
    if (s->nruns == 0)
        return 0;
    v.differences = hashes > 1;
    say(&v.out, "data: %s (hash %s)\n",
        hashes == 1 ? "the same for all runs" : "DIFFERS between runs",
        s->runs[0].hash);
    say(&v.out, "global batch: %s\n",
        batches == 1 ? "the same for all runs" : "differs by cell");
    say(&v.out,
        "runs are compared if they differ only in the way their workers "
        "exchange\n"
        "gradients or parameters, and in nothing else that a loss depends "
        "on:\n");
    compare_losses(s, &v);
    compare_reruns(s, &v);
    say(&v.out, "%s\n",
        v.differences   ? "some runs did NOT train the same thing: see above"
        : s->nruns == 1 ? "one run: there is nothing to compare"
        : v.compared    ? "all comparable runs trained the same thing"
                        : "no two cells are comparable: there is nothing to "
                          "compare");
    return v.differences;
}

static void explain(FILE *f)
{
    fprintf(f,
            "lockstep compare DIR\n\nChecks that all runs of an experiment "
            "trained the same thing. The runs must have\nthe same data. Runs "
            "with the same batch, learning rate, number formats and so on\n"
            "must also have the same losses, within rounding. The exit status "
            "is 1 if not.\n");
}

static int compare(int nwords, char **words)
{
    char text[1 << 15];
    struct study *s;
    if (nwords > 1)
        return fail("compare: takes one folder, not also %s", words[1]);
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
    .help = "check that an experiment's runs trained the same thing",
    .explain = explain,
    .least = 1,
    .run = compare,
};
