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
    long step, steps, line;
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

static void take_pair(struct report *r, const char *key, const char *value)
{
    const struct {
        const char *key;
        long *whole;
        double *number;
    } pairs[] = {
        {"step", &r->step, NULL},
        {"steps", &r->steps, NULL},
        {"line", &r->line, NULL},
        {"loss", NULL, &r->loss},
        {"val_loss", NULL, &r->val_loss},
        {"tokens_per_s", NULL, &r->tokens_per_s},
        {"eta_s", NULL, &r->eta_s},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        if (strcmp(pairs[i].key, key))
            continue;
        if (pairs[i].whole)
            *pairs[i].whole = strtol(value, NULL, 10);
        else
            *pairs[i].number = strtod(value, NULL);
    }
}

static void take_pairs(struct report *r, const char *pairs)
{
    char copy[512], *save = NULL;
    snprintf(copy, sizeof copy, "%s", pairs);
    for (char *word = strtok_r(copy, " ", &save); word;
         word = strtok_r(NULL, " ", &save)) {
        char *equals = strchr(word, '=');
        if (!equals)
            continue;
        *equals = '\0';
        take_pair(r, word, equals + 1);
    }
}

void progress_take(struct progress *p, const char *pairs)
{
    struct report r = {.world = 1, .val_loss = NAN};
    sscanf(pairs, "rank=%d world=%d", &r.rank, &r.world);
    take_pairs(&r, pairs);
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
