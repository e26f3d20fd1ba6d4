// progress.c - what the workers report, as one line.

#include "lockstep/progress.h"

#include "base/base.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const uint64_t PLAIN_EVERY_NS = 5000000000u; // where nothing redraws

struct progress {
    bool terminal, drawn;
    uint64_t last_ns; // when a plain line was last printed
    long step, steps;
    double loss, val_loss; // val_loss: NaN before the first
    double tokens_per_s, eta_s;
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

static void draw(struct progress *p)
{
    char val[32] = "";
    long s = (long)(p->eta_s + 0.5);
    if (!isnan(p->val_loss))
        snprintf(val, sizeof val, "  val %.4f", p->val_loss);
    fprintf(stderr,
            "%sstep %ld/%ld  loss %.4f%s  %.0f tokens/s  %ld:%02ld left%s",
            p->terminal ? "\r\033[K" : "", p->step, p->steps, p->loss, val,
            p->tokens_per_s, s / 60, s % 60, p->terminal ? "" : "\n");
    fflush(stderr);
    p->drawn = true;
    p->last_ns = now_ns();
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

static void take_pair(struct progress *p, const char *key, double value)
{
    if (strcmp(key, "loss") == 0)
        p->loss = value;
    else if (strcmp(key, "step") == 0)
        p->step = (long)value;
    else if (strcmp(key, "steps") == 0)
        p->steps = (long)value;
    else if (strcmp(key, "tokens_per_s") == 0)
        p->tokens_per_s = value;
    else if (strcmp(key, "eta_s") == 0)
        p->eta_s = value;
    else if (strcmp(key, "val_loss") == 0 && !isnan(value))
        p->val_loss = value;
}

void progress_take(struct progress *p, const char *pairs)
{
    char copy[512], *save = NULL;
    if (!strstr(pairs, "rank=0 "))
        return;
    snprintf(copy, sizeof copy, "%s", pairs);
    for (char *word = strtok_r(copy, " ", &save); word;
         word = strtok_r(NULL, " ", &save)) {
        char *equals = strchr(word, '=');
        if (!equals)
            continue;
        *equals = '\0';
        take_pair(p, word, strtod(equals + 1, NULL));
    }
    if (p->terminal || !p->drawn || now_ns() - p->last_ns > PLAIN_EVERY_NS ||
        p->step == p->steps)
        draw(p);
}

long progress_step(const struct progress *p)
{
    return p->step;
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
