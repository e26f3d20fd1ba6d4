// fair.c - finds which runs trained the same thing, and which numbers of which
// cells may be compared.
//
// Two runs trained the same thing if these are equal: data, global batch, all
// settings of model and optimiser, the seed, the number of steps, the number
// formats and the consistency. The backend must not matter: `lockstep compare`
// tests that.

#include "lockstep/study.h"

#include "config/backends.h"
#include "config/keys.h"
#include "lockstep/say.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Keys that matter besides those of the groups model and optimizer.
static const char *const more_keys[] = {
    "symbols", "vocab",      "val_fraction", "seed",           "steps",
    "tf32",    "attention",  "wire",         "consistency",    "backup",
    "every",   "outer_rule", "outer_lr",     "outer_momentum",
};

static bool makes_training(const struct key *k)
{
    if (!strcmp(k->name, "lr_scale") || !strcmp(k->name, "base_batch"))
        return false; // value_of() compares the learning rate they result in
    if (!strcmp(k->group, "model") || !strcmp(k->group, "optimizer") ||
        key_is_mistake(k))
        return true;
    for (size_t i = 0; i < sizeof more_keys / sizeof *more_keys; i++)
        if (!strcmp(k->name, more_keys[i]))
            return true;
    return false;
}

static void value_of(const struct result *r, const struct key *k, char *to,
                     size_t size)
{
    result_setting(r, k->name, to, size);
    if (!strcmp(k->name, "every") && !(r->row && r->row->apart))
        snprintf(to, size, "none"); // it exchanges gradients in every step
    if (!strcmp(k->name, "lr") || !strcmp(k->name, "min_lr"))
        snprintf(to, size, "%.6g", strtod(to, NULL) * r->lr_factor);
}

static bool same_value(const struct key *k, const char *a, const char *b)
{
    return key_is_number(k) ? strtod(a, NULL) == strtod(b, NULL)
                            : !strcmp(a, b);
}

int fair_difference(const struct result *a, const struct result *b, char *text,
                    size_t size)
{
    struct say out = {.text = text, .size = size};
    char x[CONFIG_PATH], y[CONFIG_PATH];
    int n = 0;
    *text = '\0';
    if (strcmp(a->hash, b->hash) && ++n)
        say(&out, "the data (hash %s, %s)", a->hash, b->hash);
    if (a->global_batch != b->global_batch)
        say(&out, "%sthe global batch (%d, %d)", n++ ? ", " : "",
            a->global_batch, b->global_batch);
    for (int i = 0; i < run_keys.n; i++) {
        const struct key *k = &run_keys.rows[i];
        if (!makes_training(k))
            continue;
        value_of(a, k, x, sizeof x);
        value_of(b, k, y, sizeof y);
        if (!same_value(k, x, y))
            say(&out, "%s%s (%s, %s)", n++ ? ", " : "", k->name, x, y);
    }
    result_setting(a, "dropout", x, sizeof x);
    if (strtod(x, NULL) > 0 && a->world != b->world) // each rank has own masks
        say(&out, "%sworkers, with dropout (%d, %d)", n++ ? ", " : "", a->world,
            b->world);
    return n;
}

static bool same_training(const struct result *a, const struct result *b)
{
    char text[256];
    return fair_difference(a, b, text, sizeof text) == 0;
}

// Returns the first cell that trained the same thing as `cell`. It may be
// `cell` itself.
static int leader(const struct study *s, int cell)
{
    const struct result *r = study_first(s, cell);
    for (int c = 0; c < cell; c++)
        if (study_first(s, c) && same_training(study_first(s, c), r))
            return c;
    return cell;
}

static int followers(const struct study *s, int cell)
{
    int n = 0;
    for (int c = 0; c < s->exp->ncells; c++)
        n += study_first(s, c) && leader(s, c) == cell;
    return n;
}

static void say_group(const struct study *s, struct say *out, int cell, int n)
{
    say(out, "Loss by step: ");
    for (int c = cell, j = 0; c < s->exp->ncells; c++)
        if (study_first(s, c) && leader(s, c) == cell)
            say_one_of(out, j++, n, s->exp->cells[c].name);
    say(out, " trained the same thing (global batch %d).\n",
        study_first(s, cell)->global_batch);
}

static void say_trainings(const struct study *s, struct say *out)
{
    char why[512];
    int first = s->cell_of[0];
    for (int c = 0; c < s->exp->ncells; c++) {
        if (!study_first(s, c) || leader(s, c) != c)
            continue;
        int n = followers(s, c);
        if (n > 1) {
            say_group(s, out, c, n);
        } else if (c != first) {
            fair_difference(study_first(s, c), study_first(s, first), why,
                            sizeof why);
            say(out,
                "Loss by step: %s trained something else; it differs from %s "
                "in %s.\n",
                s->exp->cells[c].name, s->exp->cells[first].name, why);
        }
    }
}

struct bounds {
    double least, most;
};

static struct bounds bounds_of(const struct study *s,
                               double (*of)(const struct result *r))
{
    struct bounds v = {NAN, NAN};
    for (int i = 0; i < s->nruns; i++) {
        v.least = fmin(v.least, of(&s->runs[i]));
        v.most = fmax(v.most, of(&s->runs[i]));
    }
    return v;
}

static double tokens_of(const struct result *r)
{
    return r->value[METRIC_TOKENS];
}

static double sequences_of(const struct result *r)
{
    char batch[32];
    result_setting(r, "batch", batch, sizeof batch);
    return strtod(batch, NULL);
}

// Returns how many sequences all workers evaluate for a validation loss; 0: all
// of the validation text.
static double validated_of(const struct result *r)
{
    char batches[32];
    result_setting(r, "eval_batches", batches, sizeof batches);
    return strtod(batches, NULL) * sequences_of(r) * r->world;
}

bool fair_one_task(const struct study *s)
{
    char a[CONFIG_PATH], b[CONFIG_PATH];
    for (int i = 1; i < s->nruns; i++) {
        if (strcmp(s->runs[i].hash, s->runs[0].hash))
            return false;
        for (int k = 0; k < run_keys.n; k++) {
            const struct key *key = &run_keys.rows[k];
            if (strcmp(key->group, "model") || !strcmp(key->name, "precision"))
                continue;
            value_of(&s->runs[i], key, a, sizeof a);
            value_of(&s->runs[0], key, b, sizeof b);
            if (!same_value(key, a, b))
                return false;
        }
    }
    return true;
}

static void say_validation(const struct bounds *val, struct say *out)
{
    say(out, "Validation loss: ");
    if (val->least > 0)
        say(out, "cells evaluate %.0f to %.0f sequences", val->least,
            val->most);
    else
        say(out,
            "some cells evaluate all of the validation text, others at most "
            "%.0f sequences of it",
            val->most);
    say(out, ", so compare it only between cells that evaluate the same number "
             "(eval_batches= counts the batches of one worker).\n");
}

static bool is_apart(const struct study *s, int cell)
{
    const struct result *r = study_first(s, cell);
    return r && r->row && r->row->apart;
}

// Names the cells whose workers have different parameters between exchanges.
static void say_apart(const struct study *s, struct say *out)
{
    int n = 0, j = 0;
    for (int c = 0; c < s->exp->ncells; c++)
        n += is_apart(s, c);
    if (!n)
        return;
    say(out, "Training loss: the workers of ");
    for (int c = 0; c < s->exp->ncells; c++)
        if (is_apart(s, c))
            say_one_of(out, j++, n, s->exp->cells[c].name);
    say(out, " have different parameters between two exchanges, so each has "
             "training losses of its own. Compare validation losses at "
             "multiples of every=.\n");
}

void study_fair(const struct study *s, char *text, size_t size)
{
    struct say out = {.text = text, .size = size};
    *text = '\0';
    if (!s->nruns)
        return;
    struct bounds tokens = bounds_of(s, tokens_of);
    struct bounds batch = bounds_of(s, sequences_of);
    struct bounds val = bounds_of(s, validated_of);
    say_trainings(s, &out);
    say_apart(s, &out);
    if (!fair_one_task(s)) {
        say(&out, "Seconds to a loss: not comparable; cells have different "
                  "models or data.\n");
    } else {
        say(&out, "Seconds to a loss: all cells; they have the same model and "
                  "data.\n");
    }
    if (tokens.least < tokens.most)
        say(&out,
            "Last loss: cells train on %.0f to %.0f tokens, so compare it only "
            "between cells with the same number.\n",
            tokens.least, tokens.most);
    else
        say(&out, "Last loss: all cells; each trains on %.0f tokens.\n",
            tokens.most);
    if (val.least < val.most)
        say_validation(&val, &out);
    if (batch.least < batch.most)
        say(&out,
            "Tokens/s and memory: batch= is %.0f to %.0f sequences, and this "
            "alone changes both numbers.\n",
            batch.least, batch.most);
    else
        say(&out, "Tokens/s and memory: all cells; batch= is %.0f sequences.\n",
            batch.most);
}
