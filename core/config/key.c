// key.c - sets one key of a table from checked text, and shows it as text.

#include "config/keys.h"

#include "base/base.h"
#include "config/suggest.h"
#include "config/value.h"

#include <string.h>

enum { KEYS_MOST = 256 }; // rows of a table

const struct key *key_find(const struct key_table *t, const char *name)
{
    for (int i = 0; i < t->n; i++) {
        if (strcmp(t->rows[i].name, name) == 0)
            return &t->rows[i];
    }
    return NULL;
}

bool key_is_by_hand(const struct key *k)
{
    return strcmp(k->group, "by hand") == 0;
}

const struct key *key_renamed(const struct key_table *t, const char *name)
{
    for (int i = 0; i < t->n; i++) {
        if (t->rows[i].was && strcmp(t->rows[i].was, name) == 0)
            return &t->rows[i];
    }
    return NULL;
}

const struct key *key_must_find(const struct key_table *t, const char *name,
                                const char *value)
{
    const char *names[KEYS_MOST];
    char key[64] = "", nearest[SUGGEST_TEXT];
    const struct key *k = key_find(t, name);
    if (k)
        return k;
    if (!*name) {
        fail("=%s: no key before it; want key=value, without blanks; all: %s",
             value, t->all);
        return NULL;
    }
    const struct key *now = key_renamed(t, name);
    if (now) {
        fail("%s= is called %s= now; try: %s=", name, now->name, now->name);
        return NULL;
    }
    CHECK(t->n <= KEYS_MOST);
    for (int i = 0; i < t->n; i++)
        names[i] = t->rows[i].name;
    const char *ours = suggest_ours("", name);
    bool command = ours && !strchr(ours, '='); // else its key may not be of t
    if (ours)
        snprintf(key, sizeof key, "%.*s", (int)strcspn(ours, "="), ours);
    if (ours && !*ours)
        fail("unknown key %.60s: " SUGGEST_NONE "; all: %s", name, t->all);
    else if (command || (ours && key_find(t, key)))
        fail("unknown key %.60s; try: %s; all: %s", name, ours, t->all);
    else
        fail("unknown key %.60s%s; all: %s", name,
             suggest_text(nearest, "; nearest: ", name, names, t->n), t->all);
    return NULL;
}

// ---- from text

// Names the range as people read it: "1 .. 1024 blocks, or 0 (preset)".
static int fail_range(const struct key *k, const char *value)
{
    char min[32], max[32], zero[CONFIG_PATH] = "";
    if (k->type != KEY_NUMBER && k->min == 0 && k->max == 1 && !k->zero)
        return fail("%s=%s: want 0 or 1", k->name, value);
    if (k->zero)
        snprintf(zero, sizeof zero, ", or 0 (%s)", k->zero);
    return fail("%s=%s: want a %s, %s .. %s%s%s%s", k->name, value,
                k->type == KEY_NUMBER ? "number" : "whole number",
                value_limit(min, k->min), value_limit(max, k->max),
                k->unit ? " " : "", k->unit ? k->unit : "", zero);
}

static bool in_range(const struct key *k, double x)
{
    return (x >= k->min && x <= k->max) || (k->zero && x == 0);
}

static int set_number(const struct key *k, void *at, const char *value)
{
    int64_t whole;
    double x;
    if (k->zero && strcmp(value, k->zero) == 0)
        value = "0";
    if (k->type == KEY_NUMBER) {
        if (value_real(value, &x) || !in_range(k, x))
            return fail_range(k, value);
        *(double *)at = x;
        return 0;
    }
    if (value_whole(value, &whole) || !in_range(k, (double)whole))
        return fail_range(k, value);
    if (k->type == KEY_INT64)
        *(int64_t *)at = whole;
    else
        *(int *)at = (int)whole;
    return 0;
}

// Whether the text fits and has no control characters: 0, or -1 after fail().
static int check_text(const struct key *k, const char *value)
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
    return 0;
}

int key_check_not_empty(const char *key, const char *value)
{
    return value[0] ? 0 : fail("%s=: empty; try: leave it out", key);
}

int key_set(const struct key *k, void *base, const char *value)
{
    void *at = (char *)base + k->off;
    if (key_is_number(k))
        return set_number(k, at, value);
    if (check_text(k, value) || (k->check && k->check(k->name, value)))
        return -1;
    int word = k->words ? value_word(k->name, value, k->words) : 0;
    if (word < 0)
        return -1;
    if (k->type == KEY_PARTS)
        return k->read(at, k->name, value);
    if (k->type == KEY_CHOICE)
        *(int *)at = word;
    else
        memcpy(at, value, strlen(value) + 1);
    return 0;
}

// ---- to text

const char *key_show(const struct key *k, const void *base,
                     char buf[CONFIG_PATH])
{
    const void *at = (const char *)base + k->off;
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
    case KEY_PARTS:
        k->show(at, buf);
        break;
    }
    return buf;
}

bool key_repeats(const struct key *k, const char *value)
{
    return !k->once && !strstr(value, "://");
}

// ---- a whole table

void key_defaults(const struct key_table *t, void *base)
{
    for (int i = 0; i < t->n; i++)
        CHECK(key_set(&t->rows[i], base, key_default(&t->rows[i])) == 0);
}

int key_words(const struct key_table *t, void *base, int n, char *const *words)
{
    for (int i = 0; i < n; i++) {
        const char *equals = strchr(words[i], '=');
        char name[CONFIG_WORD];
        if (!equals)
            return fail("%s: not key=value; all: %s", words[i], t->all);
        snprintf(name, sizeof name, "%.*s", (int)(equals - words[i]), words[i]);
        const struct key *k = key_must_find(t, name, equals + 1);
        if (!k || key_set(k, base, equals + 1))
            return -1;
    }
    return 0;
}
