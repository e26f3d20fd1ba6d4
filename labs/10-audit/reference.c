// reference.c - lab 10: computes every number again from the raw numbers.

#include "labs/10-audit/audit.h"

#include <math.h>

// The means of the repeats, without the first `skip` steps, smallest first.
static void means(const struct row *r, int skip, double out[MOST_REPEATS])
{
    for (int k = 0; k < r->repeats; k++) {
        double mean = 0;
        for (int s = skip; s < r->steps; s++)
            mean += r->seconds[k][s] / (r->steps - skip);
        int at = k;
        for (; at > 0 && out[at - 1] > mean; at--)
            out[at] = out[at - 1];
        out[at] = mean;
    }
}

static double typical(const struct row *r, int skip)
{
    double of[MOST_REPEATS];
    int n = r->repeats;
    means(r, skip, of);
    return (of[(n - 1) / 2] + of[n / 2]) / 2;
}

double audit_seconds(const struct row *r)
{
    return typical(r, r->warmup);
}

double audit_bytes(const struct row *r)
{
    double w = r->workers, s = (double)r->parameters * r->wire_bits / 8;
    return r->way == ONE_SERVER ? s : 2 * (w - 1) / w * s;
}

static bool equal(double a, double b)
{
    return fabs(a / b - 1) < 1e-3;
}

unsigned audit_row(const struct row *r)
{
    double of[MOST_REPEATS], printed = r->printed_seconds;
    unsigned flaws = r->repeats < 3 ? TOO_FEW : 0;
    means(r, r->warmup, of);
    if (equal(printed, audit_seconds(r)))
        flaws |= 0;
    else if (equal(printed, of[0]))
        flaws |= BEST_OF;
    else
        flaws |= equal(printed, typical(r, 0)) ? WARM_UP : NO_SUCH;
    if (!equal(r->printed_total, printed * (r->steps - r->warmup)))
        flaws |= WRONG_TOTAL;
    return flaws | (equal(r->printed_bytes, audit_bytes(r)) ? 0 : WRONG_BYTES);
}

unsigned audit_pair(const struct row *a, const struct row *b)
{
    bool batch = a->workers * a->batch != b->workers * b->batch;
    return (a->workers != b->workers ? OTHER_WORKERS : 0u) |
           (batch ? OTHER_BATCH : 0u) | (a->lr != b->lr ? OTHER_LR : 0u) |
           (a->parameters != b->parameters ? OTHER_MODEL : 0u) |
           (a->wire_bits != b->wire_bits ? OTHER_WIRE : 0u) |
           (a->overlap != b->overlap ? OTHER_OVERLAP : 0u) |
           (a->loopback != b->loopback ? OTHER_PLACE : 0u);
}

// Whether the repeats of two rows do not overlap.
static bool apart(const struct row *a, const struct row *b)
{
    double x[MOST_REPEATS], y[MOST_REPEATS];
    means(a, a->warmup, x);
    means(b, b->warmup, y);
    return x[a->repeats - 1] < y[0] || y[b->repeats - 1] < x[0];
}

enum verdict audit_claim(const struct row *a, const struct row *b,
                         const struct claim *c)
{
    bool fast = c->kind == FASTER;
    double is = fast ? audit_seconds(b) / audit_seconds(a)
                     : audit_bytes(b) / audit_bytes(a);
    if (audit_pair(a, b))
        return UNTESTABLE;
    if (fast &&
        (a->repeats < 3 || b->repeats < 3 || a->loopback || !apart(a, b)))
        return UNTESTABLE;
    return is > c->factor * 0.99 ? SUPPORTED : CONTRADICTED;
}
