// progress.c - shows the reports of all workers as one line.

#include "launch/progress.h"

#include "base/base.h"
#include "config/value.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANKS = 4096 }; // the largest number of workers

struct report {
    int rank, world;
    long step, steps;
    bool line;
    double loss, val_loss, tokens_per_s, eta_s; // val_loss NaN: not evaluated
};

struct progress {
    bool terminal, drawn;
    struct report last;         // of worker 0
    long val_step;              // of the last evaluation
    double val_loss;            // NaN before the first
    double tokens_per_s[RANKS]; // of each worker; 0: no report yet
};

int progress_open(struct progress **p)
{
    *p = mem_alloc(1, sizeof **p);
    if (!*p)
        return -1;
    (*p)->terminal = isatty(STDERR_FILENO);
    (*p)->val_loss = NAN;
    return 0;
}

// Returns the tokens/s of the job. A worker without a report yet counts with
// the mean of the other workers.
static double job_rate(const struct progress *p)
{
    double sum = 0;
    int heard = 0;
    for (int r = 0; r < RANKS; r++) {
        sum += p->tokens_per_s[r];
        heard += p->tokens_per_s[r] > 0;
    }
    return heard ? sum / heard * p->last.world : 0;
}

static void draw(struct progress *p)
{
    char val[48] = "", left[32];
    const struct report *r = &p->last;
    if (!isnan(p->val_loss) && r->step == p->val_step)
        snprintf(val, sizeof val, "  val %.4f", p->val_loss);
    else if (!isnan(p->val_loss) && p->terminal)
        snprintf(val, sizeof val, "  val %.4f at %ld", p->val_loss,
                 p->val_step);
    fprintf(stderr, "%sstep %ld/%ld  loss %.4f%s  %.0f tokens/s  %s left%s",
            p->terminal ? "\r\033[K" : "", r->step, r->steps, r->loss, val,
            job_rate(p), value_seconds(left, r->eta_s),
            p->terminal ? "" : "\n");
    fflush(stderr);
    p->drawn = true;
}

void progress_hide(struct progress *p)
{
    if (p->terminal && p->drawn)
        fprintf(stderr, "\r\033[K");
}

void progress_show(struct progress *p)
{
    if (p->terminal && p->drawn)
        draw(p);
}

// The number of a pair; `otherwise` if the report does not have the key.
static long whole(const char *pairs, const char *key, long otherwise)
{
    const char *at = strstr(pairs, key);
    return at ? strtol(at + strlen(key), NULL, 10) : otherwise;
}

static double number(const char *pairs, const char *key, double otherwise)
{
    const char *at = strstr(pairs, key);
    return at ? strtod(at + strlen(key), NULL) : otherwise;
}

void progress_take(struct progress *p, const char *pairs)
{
    const struct report r = {
        .rank = (int)whole(pairs, "rank=", 0),
        .world = (int)whole(pairs, " world=", 1),
        .step = whole(pairs, " step=", 0),
        .steps = whole(pairs, " steps=", 0),
        .line = whole(pairs, " line=", 0) > 0,
        .loss = number(pairs, " loss=", 0),
        .val_loss = number(pairs, " val_loss=", NAN),
        .tokens_per_s = number(pairs, " tokens_per_s=", 0),
        .eta_s = number(pairs, " eta_s=", 0),
    };
    if (r.rank < 0 || r.rank >= RANKS)
        return;
    p->tokens_per_s[r.rank] = r.tokens_per_s;
    if (r.rank)
        return;
    p->last = r;
    if (!isnan(r.val_loss)) {
        p->val_loss = r.val_loss;
        p->val_step = r.step;
    }
    if (p->terminal || r.line)
        draw(p);
}

long progress_step(const struct progress *p)
{
    return p->last.step;
}

void progress_close(struct progress **p)
{
    if (!*p)
        return;
    if ((*p)->terminal && (*p)->drawn)
        fprintf(stderr, "\n");
    mem_free(*p);
    *p = NULL;
}
