// answer.c - sums an experiment's results up in three sentences, and adds
// warnings.
//
//     first    the cell that reaches the target loss first, or, without a
//              target loss, the fastest cell
//     last     the last cell, and why: more tokens, or steps that wait
//     price    memory, and the best validation loss
//
// Two cells are tied if their ranges over the repeats overlap. The sentences
// say so. This file knows no backend by name.

#include "lockstep/study.h"

#include "lockstep/say.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// A run is disturbed if it exceeds both limits. much_taken: the share of its
// computing time in which the process had no processor. many_switches: its
// involuntary context switches a second. A thread that waits for another thread
// gives up its processor voluntarily, and such a switch does not count.
static const double much_taken = 0.1, many_switches = 20;

static const double mib = 1048576;

struct rank {
    int cell;
    struct range v; // of the metric; v.median is not NaN
};

struct ranking {
    enum metric metric;
    bool seconds; // true: smaller is better
    int n;        // cells that have a value of the metric
    int tied;     // cells that overlap the first one, itself included
    struct rank at[EXP_CELLS];
};

static int by_median(const void *a, const void *b)
{
    const struct rank *x = a, *y = b;
    if (x->v.median == y->v.median)
        return (x->cell > y->cell) - (x->cell < y->cell);
    return x->v.median < y->v.median ? -1 : 1;
}

static bool overlap(const struct range *a, const struct range *b)
{
    return a->least <= b->most && b->least <= a->most;
}

static void rank_by(const struct study *s, enum metric m, struct ranking *r)
{
    int n;
    r->metric = m;
    r->seconds = m == METRIC_SECONDS_TO;
    r->n = r->tied = 0;
    for (int c = 0; c < s->exp->ncells; c++) {
        struct rank one = {c, study_range(s, c, m, &n)};
        if (!isnan(one.v.median))
            r->at[r->n++] = one;
    }
    qsort(r->at, (size_t)r->n, sizeof *r->at, by_median);
    for (int i = 0; !r->seconds && i < r->n / 2; i++) {
        struct rank t = r->at[i];
        r->at[i] = r->at[r->n - 1 - i];
        r->at[r->n - 1 - i] = t;
    }
    while (r->tied < r->n && overlap(&r->at[r->tied].v, &r->at[0].v))
        r->tied++;
}

static const char *name_of(const struct study *s, const struct rank *r)
{
    return s->exp->cells[r->cell].name;
}

// Returns net= of all cells with more than one worker, or "" if it differs.
static const char *common_net(const struct study *s)
{
    const char *net = NULL;
    for (int i = 0; i < s->nruns; i++) {
        const struct result *r = &s->runs[i];
        if (r->world == 1)
            continue;
        if (net && strcmp(net, r->net))
            return "";
        net = r->net;
    }
    return net ? net : "";
}

static void say_range(struct say *out, const struct range *v)
{
    if (v->least < v->most)
        say(out, " (%.3g .. %.3g)", v->least, v->most);
}

// Says ", 0.55 (0.53 .. 0.57) times the time of single". Says nothing for the
// baseline itself.
static void say_beside(const struct study *s, struct say *out,
                       const struct ranking *r, int cell)
{
    int base = s->exp->cells[cell].baseline;
    if (base < 0 || base == cell)
        return;
    struct range ratio = study_ratio(s, cell, base, r->metric);
    if (isnan(ratio.median))
        return;
    say(out, ", %.2f", ratio.median);
    if (ratio.least < ratio.most)
        say(out, " (%.2f .. %.2f)", ratio.least, ratio.most);
    say(out, " %s %s", r->seconds ? "times the time of" : "times the rate of",
        s->exp->cells[base].name);
}

static void say_value(struct say *out, const struct ranking *r,
                      const struct range *v)
{
    say(out, r->seconds ? "%.3g" : "%.0f", v->median);
    if (r->seconds)
        say_range(out, v);
    else if (v->least < v->most)
        say(out, " (%.0f .. %.0f)", v->least, v->most);
    say(out, r->seconds ? " s" : " tokens/s");
}

static void say_first(const struct study *s, struct say *out,
                      const struct ranking *r)
{
    const char *net = common_net(s);
    const struct rank *best = &r->at[0];
    if (*net)
        say(out, "On links of %s, ", net);
    for (int i = 0; i < r->tied; i++)
        say_one_of(out, i, r->tied, name_of(s, &r->at[i]));
    if (r->seconds)
        say(out, " %s loss %.2f first", r->tied > 1 ? "reach" : "reaches",
            s->target);
    else
        say(out, " %s", r->tied > 1 ? "are fastest" : "is fastest");
    if (r->tied > 1)
        say(out, ", too close to tell apart: their ranges overlap. %s: ",
            name_of(s, best));
    else
        say(out, ": ");
    say_value(out, r, &best->v);
    say_beside(s, out, r, best->cell);
    say(out, ".\n");
}

static double median(const struct study *s, int cell, enum metric m)
{
    int n;
    return study_range(s, cell, m, &n).median;
}

// Says a time, as "436 ms", "3.1 ms" or "0.074 ms".
static void say_ms(struct say *out, const char *before, double s)
{
    double ms = 1e3 * s;
    say(out, "%s%.*f ms", before, ms < 1 ? 3 : ms < 10 ? 1 : 0, ms);
}

// Says how long a step waits, and what the law predicts for its exchange. If a
// step waits for less than 0.4 of its time, says how long it computes instead.
static void say_waiting(const struct study *s, struct say *out, int cell)
{
    double step = median(s, cell, METRIC_STEP_S);
    double waits =
        median(s, cell, METRIC_EXPOSED_S) + median(s, cell, METRIC_WAIT_S);
    double law = median(s, cell, METRIC_LINK_LAW);
    if (isnan(waits))
        return;
    if (waits < 0.4 * step) {
        say_ms(out, ": it computes for ", step - waits);
        say_ms(out, " of each step's ", step);
        return;
    }
    say_ms(out, ": each step waits ", waits);
    say_ms(out, " of its ", step);
    say(out, " for other workers");
    if (!isnan(law))
        say_ms(out, "; the law predicts an exchange of ", law);
}

static void say_why(const struct study *s, struct say *out, int cell)
{
    int base = s->exp->cells[cell].baseline;
    bool beside = base >= 0 && base != cell;
    double tokens =
        beside ? study_ratio(s, cell, base, METRIC_TOKENS_TO).median : NAN;
    double rate =
        beside ? study_ratio(s, cell, base, METRIC_TOKENS_PER_S).median : NAN;
    if (tokens > 1.05 && tokens > 1 / rate)
        say(out, ": it needs %.2f times the tokens", tokens);
    else
        say_waiting(s, out, cell);
}

static void say_last(const struct study *s, struct say *out,
                     const struct ranking *r)
{
    const struct rank *last = &r->at[r->n - 1];
    if (r->tied == r->n)
        return;
    say(out, "%s %s: ", name_of(s, last),
        r->seconds ? "takes longest" : "is slowest");
    say_value(out, r, &last->v);
    say_beside(s, out, r, last->cell);
    say_why(s, out, last->cell);
    say(out, ".\n");
}

static int extreme(const struct study *s, enum metric m, bool most)
{
    int found = -1;
    for (int c = 0; c < s->exp->ncells; c++) {
        double v = median(s, c, m);
        if (isnan(v))
            continue;
        double than = found < 0 ? NAN : median(s, found, m);
        if (found < 0 || (most ? v > than : v < than))
            found = c;
    }
    return found;
}

static void say_price(const struct study *s, struct say *out)
{
    int small = extreme(s, METRIC_MEMORY, false);
    int large = extreme(s, METRIC_MEMORY, true);
    int good = extreme(s, METRIC_BEST_VAL_LOSS, false);
    int bad = extreme(s, METRIC_BEST_VAL_LOSS, true);
    const struct cell *cells = s->exp->cells;
    if (small >= 0 &&
        median(s, large, METRIC_MEMORY) - median(s, small, METRIC_MEMORY) <
            0.5 * mib)
        say(out, "The peak memory of a worker is %.0f MiB in all cells",
            median(s, small, METRIC_MEMORY) / mib);
    else if (small >= 0)
        say(out,
            "The peak memory of a worker is from %.0f MiB (%s) to %.0f MiB "
            "(%s)",
            median(s, small, METRIC_MEMORY) / mib, cells[small].name,
            median(s, large, METRIC_MEMORY) / mib, cells[large].name);
    if (small >= 0 && good >= 0)
        say(out, "; ");
    if (good >= 0 && median(s, good, METRIC_BEST_VAL_LOSS) >=
                         median(s, bad, METRIC_BEST_VAL_LOSS) - 0.0005)
        say(out, "the best validation loss is %.3f in all cells",
            median(s, good, METRIC_BEST_VAL_LOSS));
    else if (good >= 0)
        say(out, "the best validation losses are from %.3f (%s) to %.3f (%s)",
            median(s, good, METRIC_BEST_VAL_LOSS), cells[good].name,
            median(s, bad, METRIC_BEST_VAL_LOSS), cells[bad].name);
    if (small >= 0 || good >= 0)
        say(out, ".\n");
}

// ---- warnings

static void warn_unreached(const struct study *s, struct say *out)
{
    int n = 0, j = 0;
    for (int c = 0; c < s->exp->ncells; c++)
        n += study_first(s, c) && isnan(median(s, c, METRIC_SECONDS_TO));
    if (!n || isnan(s->target) || !fair_one_task(s))
        return;
    say(out, "Loss %.2f was not reached by ", s->target);
    for (int c = 0; c < s->exp->ncells; c++)
        if (study_first(s, c) && isnan(median(s, c, METRIC_SECONDS_TO)))
            say_one_of(out, j++, n, s->exp->cells[c].name);
    say(out, ".\n");
}

static bool is_disturbed(const struct result *r)
{
    return r->value[METRIC_TAKEN] > much_taken &&
           r->value[METRIC_SWITCHES] > many_switches;
}

// Servers on the same machine also take processors from the workers. So runs
// with servers are not judged.
static void warn_busy(const struct study *s, struct say *out)
{
    const struct result *worst = NULL;
    int busy = 0, judged = 0;
    for (int i = 0; i < s->nruns; i++) {
        const struct result *r = &s->runs[i];
        double taken = r->value[METRIC_TAKEN];
        if (r->oversubscribed || r->servers || isnan(taken))
            continue;
        judged++;
        if (!is_disturbed(r))
            continue;
        busy++;
        if (!worst || taken > worst->value[METRIC_TAKEN])
            worst = r;
    }
    if (busy)
        say(out,
            "Warning: the machine was busy. In %d of %d runs without servers, "
            "other programs took the processors for more than %.0f%% of the "
            "computing time. The worst is %s, repeat %d, with %.0f%%. The "
            "times of such runs are too long.\n",
            busy, judged, 100 * much_taken, worst->cell, worst->repeat,
            100 * worst->value[METRIC_TAKEN]);
}

static void warn_crowd(const struct study *s, struct say *out)
{
    int n = 0, j = 0;
    for (int c = 0; c < s->exp->ncells; c++)
        n += study_first(s, c) && study_first(s, c)->oversubscribed;
    if (!n)
        return;
    say(out, "Warning: more threads than cores, so workers share cores: ");
    for (int c = 0; c < s->exp->ncells; c++)
        if (study_first(s, c) && study_first(s, c)->oversubscribed)
            say_one_of(out, j++, n, s->exp->cells[c].name);
    say(out, ".\n");
}

static void warn_mistakes(const struct study *s, struct say *out)
{
    for (int c = 0; c < s->exp->ncells; c++) {
        const struct result *r = study_first(s, c);
        if (r && *r->mistakes)
            say(out, "Warning: %s is wrong on purpose: %s.\n", r->cell,
                r->mistakes);
    }
}

static void say_paced(const struct study *s, struct say *out)
{
    for (int c = 0; c < s->exp->ncells; c++) {
        const struct result *r = study_first(s, c);
        if (r && *r->pace)
            say(out,
                "%s slept instead of computing (pace=%s ms): its bytes and "
                "waits are real, but it learned nothing.\n",
                r->cell, r->pace);
    }
}

// A repeat is an outlier if its distance from the median is more than a tenth
// of the median, and more than three times the median distance of the repeats.
static void warn_outliers(const struct study *s, struct say *out)
{
    double off[EXP_REPEATS];
    for (int c = 0; c < s->exp->ncells; c++) {
        double middle = median(s, c, METRIC_TOKENS_PER_S);
        int n = 0;
        for (int i = 0; i < s->nruns && n < EXP_REPEATS; i++)
            if (s->cell_of[i] == c)
                off[n++] = fabs(s->runs[i].value[METRIC_TOKENS_PER_S] - middle);
        double usual = range_of(off, n).median;
        for (int i = 0; n > 2 && i < s->nruns; i++) {
            const struct result *r = &s->runs[i];
            double rate = r->value[METRIC_TOKENS_PER_S];
            if (s->cell_of[i] == c && fabs(rate - middle) > 3 * usual &&
                fabs(rate - middle) > 0.1 * middle)
                say(out,
                    "Outlier (kept in all ranges): %s, repeat %d, has %.0f "
                    "tokens/s; the cell's median is %.0f.\n",
                    r->cell, r->repeat, rate, middle);
        }
    }
}

void study_answer(const struct study *s, char *text, size_t size)
{
    struct ranking r;
    struct say out = {.text = text, .size = size};
    *text = '\0';
    bool timed = !isnan(s->target) && fair_one_task(s);
    rank_by(s, timed ? METRIC_SECONDS_TO : METRIC_TOKENS_PER_S, &r);
    if (r.n < 2 && timed)
        rank_by(s, METRIC_TOKENS_PER_S, &r);
    if (r.n > 1) {
        say_first(s, &out, &r);
        say_last(s, &out, &r);
        say_price(s, &out);
    }
    warn_unreached(s, &out);
    warn_busy(s, &out);
    warn_crowd(s, &out);
    say_paced(s, &out);
    warn_mistakes(s, &out);
    warn_outliers(s, &out);
    if (r.n > 1 && !study_repeats(s))
        say(&out, "Each cell ran once, so the variation of its times is "
                  "unknown; try: repeat=3.\n");
}
