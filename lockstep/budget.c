// budget.c - the time of a step by its FLOP, and the time and the cost of a
// whole training.

#include "lockstep/budget.h"

#include "base/base.h"

#include <stdio.h>

int budget_check(const struct budget *b, bool gpu, double compute_ms)
{
    bool flops = b->flops > 0, mfu = b->mfu > 0;
    if (flops != mfu)
        return fail(
            "predict: %s= requires %s=, too: the time of a step follows "
            "from both; try: %s",
            flops ? "flops" : "mfu", flops ? "mfu" : "flops",
            flops ? "mfu=0.4" : "flops=312e12");
    if (flops && (gpu || compute_ms > 0))
        return fail("predict: flops= and mfu= give the time that %s= gives, "
                    "too; try: without one of them",
                    gpu ? "device" : "compute_ms");
    if (b->price > 0 && b->tokens == 0)
        return fail("predict: price=%g: the cost follows from tokens=, too; "
                    "try: tokens=1e9",
                    b->price);
    return 0;
}

void budget_compute(const struct budget *b, double flop, double tokens,
                    double *compute_ms)
{
    if (b->flops > 0)
        *compute_ms = 1e3 * tokens * flop / (b->flops * b->mfu);
}

// Writes a duration as people say it: "24 minutes", "12 days", "164 years".
static const char *duration(char text[32], double seconds)
{
    static const struct {
        const char *name;
        double seconds, from;
    } units[] = {{"years", 365.25 * 86400, 3 * 365.25 * 86400},
                 {"days", 86400, 48 * 3600},
                 {"hours", 3600, 90 * 60},
                 {"minutes", 60, 90},
                 {"seconds", 1, 0}};
    int i = 0;
    while (seconds < units[i].from)
        i++;
    double n = seconds / units[i].seconds;
    snprintf(text, 32, n < 9.95 ? "%.1f %s" : "%.0f %s", n, units[i].name);
    return text;
}

void budget_head(const struct budget *b)
{
    if (b->tokens > 0)
        printf(" %12s", "training");
    if (b->price > 0)
        printf(" %10s", "cost");
}

void budget_row(const struct budget *b, double tokens_per_s, int workers)
{
    char text[32];
    double training = b->tokens / tokens_per_s;
    if (b->tokens > 0)
        printf(" %12s", duration(text, training));
    if (b->price > 0)
        printf(" %10.0f", training / 3600 * workers * b->price);
}
