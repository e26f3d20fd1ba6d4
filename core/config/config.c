// config.c - the keys of a run: set, show and check them.
//
// Everything but config_check() is a loop over the table of keys.c.

#include "config/config.h"

#include "base/base.h"
#include "config/keys.h"
#include "config/suggest.h"
#include "config/value.h"

#include <string.h>

// The range of a key as people read it: "1 .. 1024 blocks, or 0 (preset)".
static void range_text(const struct key *k, char out[160])
{
    char min[32], max[32];
    int at = snprintf(out, 160, "%s .. %s", value_text(min, k->min),
                      value_text(max, k->max));
    if (k->unit)
        at += snprintf(out + at, (size_t)(160 - at), " %s", k->unit);
    if (k->zero)
        snprintf(out + at, (size_t)(160 - at), ", or 0 (%s)", k->zero);
}

static int fail_range(const struct key *k, const char *value)
{
    char range[160];
    range_text(k, range);
    return fail("%s=%s: want a %s, %s", k->name, value,
                k->type == KEY_NUMBER ? "number" : "whole number", range);
}

static bool in_range(const struct key *k, double x)
{
    return (x >= k->min && x <= k->max) || (k->zero && x == 0);
}

// A number of any type, in range, as a double and, if it is one, whole.
static int read_number(const struct key *k, const char *value, double *x,
                       int64_t *whole)
{
    if (k->zero && strcmp(value, k->zero) == 0)
        value = "0";
    if (k->type == KEY_NUMBER) {
        if (value_real(value, x) || !in_range(k, *x))
            return fail_range(k, value);
        return 0;
    }
    if (value_whole(value, whole) || !in_range(k, (double)*whole))
        return fail_range(k, value);
    *x = (double)*whole;
    return 0;
}

// Text that fits, on one line, and that the row's own check lets through.
static int read_text(const struct key *k, const char *value)
{
    size_t limit = k->type == KEY_WORD ? CONFIG_WORD : CONFIG_PATH;
    size_t n = strlen(value);
    if (n >= limit)
        return fail("%s=%.40s...: %zu characters, at most %zu fit", k->name,
                    value, n, limit - 1);
    for (size_t i = 0; i < n; i++) {
        if ((unsigned char)value[i] < ' ' || value[i] == 127)
            return fail("%s: control character %d at %zu", k->name, value[i],
                        i);
    }
    if (k->words && value_word(k->name, value, k->words) < 0)
        return -1;
    return k->check ? k->check(k->name, value) : 0;
}

static bool is_number(const struct key *k)
{
    return k->type <= KEY_NUMBER;
}

static int check_value(const struct key *k, const char *value)
{
    double x;
    int64_t whole;
    return is_number(k) ? read_number(k, value, &x, &whole)
                        : read_text(k, value);
}

// Replace or append key=value in the text of the backends' keys.
static int set_opt(struct run *r, const struct key *k, const char *value)
{
    char next[CONFIG_PATH] = "";
    struct opts_item item;
    if (strchr(value, '='))
        return fail("%s=%s: '=' in the value", k->name, value);
    for (const char *text = r->sync_opts; (text = opts_item(text, &item));) {
        size_t at = strlen(next);
        if (item.key_len == strlen(k->name) &&
            memcmp(item.key, k->name, item.key_len) == 0)
            continue;
        snprintf(next + at, sizeof next - at, "%.*s=%.*s,", (int)item.key_len,
                 item.key, (int)item.value_len, item.value);
    }
    char whole[CONFIG_PATH] = "";
    if (text_into(whole, sizeof whole, "%s%s=%s", next, k->name, value))
        return -1;
    memcpy(r->sync_opts, whole, sizeof whole);
    return 0;
}

static int set_member(struct run *r, const struct key *k, const char *value)
{
    void *at = key_member(r, k);
    double x = 0;
    int64_t whole = 0;
    if (is_number(k) && read_number(k, value, &x, &whole))
        return -1;
    switch (k->type) {
    case KEY_INT:
        *(int *)at = (int)whole;
        return 0;
    case KEY_INT64:
        *(int64_t *)at = whole;
        return 0;
    case KEY_NUMBER:
        *(double *)at = x;
        return 0;
    case KEY_CHOICE: {
        int i = value_word(k->name, value, k->words);
        if (i >= 0)
            *(int *)at = i;
        return i < 0 ? -1 : 0;
    }
    case KEY_WORD:
    case KEY_TEXT:
        if (read_text(k, value))
            return -1;
        memcpy(at, value, strlen(value) + 1);
        return 0;
    }
    return fail("%s: a key of no type", k->name);
}

int config_set(struct run *r, const char *key, const char *value)
{
    const struct key *k = key_find(key);
    if (!k) {
        const char *names[256];
        CHECK(key_count <= 256);
        for (int i = 0; i < key_count; i++)
            names[i] = key_table[i].name;
        return fail("unknown key %.60s; nearest: %s; all: lockstep train "
                    "--help",
                    key, suggest_nearest(key, names, key_count));
    }
    if (k->off != KEY_IN_OPTS)
        return set_member(r, k, value);
    return check_value(k, value) ? -1 : set_opt(r, k, value);
}

void config_defaults(struct run *r)
{
    memset(r, 0, sizeof *r);
    for (int i = 0; i < key_count; i++) {
        const struct key *k = &key_table[i];
        CHECK(k->off == KEY_IN_OPTS || set_member(r, k, k->value) == 0);
    }
}

// The value of key k as text in buf; NULL for a backend's key that is not set.
static const char *show(const struct run *r, const struct key *k,
                        char buf[CONFIG_PATH])
{
    if (k->off == KEY_IN_OPTS) {
        struct opts_item item;
        for (const char *t = r->sync_opts; (t = opts_item(t, &item));) {
            if (item.key_len != strlen(k->name) ||
                memcmp(item.key, k->name, item.key_len) != 0)
                continue;
            snprintf(buf, CONFIG_PATH, "%.*s", (int)item.value_len, item.value);
            return buf;
        }
        return NULL;
    }
    const void *at = key_member(r, k);
    switch (k->type) {
    case KEY_INT:
        snprintf(buf, CONFIG_PATH, "%d", *(const int *)at);
        break;
    case KEY_INT64:
        snprintf(buf, CONFIG_PATH, "%lld", (long long)*(const int64_t *)at);
        break;
    case KEY_NUMBER:
        return value_text(buf, *(const double *)at);
    case KEY_CHOICE:
        return k->words[*(const int *)at];
    case KEY_WORD:
    case KEY_TEXT:
        return at;
    }
    return buf;
}

void config_each(const struct run *r, config_visit *fn, void *ctx)
{
    for (int i = 0; i < key_count; i++) {
        const struct key *k = &key_table[i];
        char buf[CONFIG_PATH];
        const char *value = show(r, k, buf);
        if (value)
            fn(ctx, k->name, value, is_number(k), !k->local);
    }
}

int config_check(const struct run *r)
{
    if (r->min_lr > r->lr)
        return fail("min_lr=%g is above lr=%g", r->min_lr, r->lr);
    if (r->heads > 0 && r->channels > 0 && r->channels % r->heads != 0)
        return fail("heads=%d does not divide channels=%d", r->heads,
                    r->channels);
    if (strcmp(r->resume, "auto") == 0 && r->out[0] == '\0')
        return fail("resume=auto looks for checkpoints in out; try: out=DIR");
    if (r->save > 0 && r->out[0] == '\0')
        return fail("save=%d has nowhere to write; try: out=DIR", r->save);
    if (r->world > 0 && r->rank >= r->world)
        return fail("rank=%d of world=%d: ranks count from 0", r->rank,
                    r->world);
    if (strcmp(r->sync, "local") == 0 && (r->workers > 1 || r->world > 1))
        return fail("sync=local trains one worker, not %d; try: sync=ring",
                    r->workers > 1 ? r->workers : r->world);
    if (r->world == 0 && r->rank >= 0)
        return fail("rank=%d without world; try: world=N", r->rank);
    return 0;
}
