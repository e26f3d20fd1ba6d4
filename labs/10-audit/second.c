// second.c - lab 10, written from the handout alone.

#include "labs/10-audit/audit.h"

#include <math.h>
#include <stdlib.h>

// The mean seconds of one repeat's steps, without its first `skip` steps.
static double of_repeat(const struct row *r, int repeat, int skip)
{
    double sum = 0;
    for (int s = skip; s < r->steps; s++)
        sum += r->seconds[repeat][s];
    return sum / (r->steps - skip);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// The median of the repeats' means.
static double of_repeats(const struct row *r, int skip)
{
    double of[MOST_REPEATS];
    int n = r->repeats;
    for (int i = 0; i < n; i++)
        of[i] = of_repeat(r, i, skip);
    qsort(of, (size_t)n, sizeof *of, by_size);
    return (of[n / 2] + of[(n - 1) / 2]) / 2;
}

static double fastest(const struct row *r)
{
    double best = INFINITY;
    for (int i = 0; i < r->repeats; i++)
        best = fmin(best, of_repeat(r, i, r->warmup));
    return best;
}

static double slowest(const struct row *r)
{
    double worst = 0;
    for (int i = 0; i < r->repeats; i++)
        worst = fmax(worst, of_repeat(r, i, r->warmup));
    return worst;
}

static bool equal(double printed, double right)
{
    return fabs(printed - right) < fabs(right) / 1000;
}

double audit_seconds(const struct row *r)
{
    return of_repeats(r, r->warmup);
}

double audit_bytes(const struct row *r)
{
    double s = (double)r->parameters * r->wire_bits / 8;
    if (r->way == ONE_SERVER)
        return s;
    return 2.0 * (r->workers - 1) / r->workers * s;
}

unsigned audit_row(const struct row *r)
{
    unsigned wrong = r->repeats < 3 ? TOO_FEW : 0;
    double printed = r->printed_seconds;
    if (!equal(printed, audit_seconds(r)))
        wrong |= equal(printed, fastest(r))         ? BEST_OF
                 : equal(printed, of_repeats(r, 0)) ? WARM_UP
                                                    : NO_SUCH;
    if (!equal(r->printed_total, printed * (r->steps - r->warmup)))
        wrong |= WRONG_TOTAL;
    if (!equal(r->printed_bytes, audit_bytes(r)))
        wrong |= WRONG_BYTES;
    return wrong;
}

unsigned audit_pair(const struct row *a, const struct row *b)
{
    unsigned other = 0;
    other |= a->workers != b->workers ? OTHER_WORKERS : 0;
    if (a->workers * a->batch != b->workers * b->batch)
        other |= OTHER_BATCH;
    other |= a->lr != b->lr ? OTHER_LR : 0;
    other |= a->parameters != b->parameters ? OTHER_MODEL : 0;
    other |= a->wire_bits != b->wire_bits ? OTHER_WIRE : 0;
    other |= a->overlap != b->overlap ? OTHER_OVERLAP : 0;
    other |= a->loopback != b->loopback ? OTHER_PLACE : 0;
    return other;
}

static bool repeats_overlap(const struct row *a, const struct row *b)
{
    if (audit_seconds(b) < audit_seconds(a))
        return slowest(b) >= fastest(a);
    return slowest(a) >= fastest(b);
}

enum verdict audit_claim(const struct row *a, const struct row *b,
                         const struct claim *c)
{
    double ratio = audit_bytes(b) / audit_bytes(a);
    if (audit_pair(a, b))
        return UNTESTABLE;
    if (c->kind == FASTER) {
        if (a->repeats < 3 || b->repeats < 3 || a->loopback ||
            repeats_overlap(a, b))
            return UNTESTABLE;
        ratio = audit_seconds(b) / audit_seconds(a);
    }
    return ratio > c->factor * 0.99 ? SUPPORTED : CONTRADICTED;
}
