// opts.c - the settings of one backend: "key=value,key=value".
//
// Whoever opens a backend parses its text once; the backend asks for the keys
// it has; what is left unread was meant for another backend, and is an error.

#include "config/keys.h"
#include "config/value.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

enum { OPTS_MAX = 64 };

struct opt {
    const char *key, *value;
    bool read;
};

struct opts {
    int n;
    struct opt items[OPTS_MAX];
    char text[]; // a copy, cut into words
};

static size_t key_length(const char *text)
{
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_");
    return n > 0 && text[n] == '=' ? n : 0;
}

const char *opts_item(const char *text, struct opts_item *out)
{
    size_t len = key_length(text);
    if (len == 0)
        return NULL;
    const char *value = text + len + 1, *end = value;
    while (*end && !(*end == ',' && key_length(end + 1) > 0))
        end++;
    *out = (struct opts_item){text, value, len, (size_t)(end - value)};
    return *end ? end + 1 : end;
}

static struct opt *find(struct opts *o, const char *key)
{
    for (int i = 0; i < o->n; i++) {
        if (strcmp(o->items[i].key, key) == 0)
            return &o->items[i];
    }
    return NULL;
}

// Cut o->text into items; a key given twice keeps its last value.
static int cut(struct opts *o, const char *text)
{
    struct opts_item item;
    while (*text) {
        const char *next = opts_item(text, &item);
        if (!next)
            return fail("options: want key=value,key=value at '%.60s'", text);
        char *key = o->text + (item.key - o->text);
        char *value = o->text + (item.value - o->text);
        key[item.key_len] = value[item.value_len] = '\0';
        struct opt *old = find(o, key);
        if (!old && o->n == OPTS_MAX)
            return fail("options: more than %d keys, at %s", OPTS_MAX, key);
        *(old ? old : &o->items[o->n++]) = (struct opt){key, value, false};
        text = next;
    }
    return 0;
}

int opts_open(struct opts **o, const char *text)
{
    size_t bytes = strlen(text) + 1;
    struct opts *new = mem_alloc(1, sizeof *new + bytes);
    if (!new)
        return -1;
    memcpy(new->text, text, bytes);
    if (cut(new, new->text)) {
        opts_close(&new);
        return -1;
    }
    *o = new;
    return 0;
}

void opts_close(struct opts **o)
{
    mem_free(*o);
    *o = NULL;
}

const char *opts_text(struct opts *o, const char *key, const char *otherwise)
{
    struct opt *opt = find(o, key);
    if (!opt)
        return otherwise;
    opt->read = true;
    return opt->value;
}

int opts_int(struct opts *o, const char *key, long otherwise, long min,
             long max, long *out)
{
    const char *text = opts_text(o, key, NULL);
    if (!text) {
        *out = otherwise;
        return 0;
    }
    int64_t value;
    if (value_whole(text, &value) || value < min || value > max)
        return fail("%s=%s: want a whole number, %ld .. %ld", key, text, min,
                    max);
    *out = (long)value;
    return 0;
}

int opts_number(struct opts *o, const char *key, double otherwise, double min,
                double max, double *out)
{
    const char *text = opts_text(o, key, NULL);
    if (!text) {
        *out = otherwise;
        return 0;
    }
    double value;
    if (value_real(text, &value) || !(value >= min && value <= max))
        return fail("%s=%s: want a number, %.10g .. %.10g", key, text, min,
                    max);
    *out = value;
    return 0;
}

int opts_word(struct opts *o, const char *key, int otherwise,
              const char *const *words, int *out)
{
    const char *text = opts_text(o, key, NULL);
    if (!text) {
        *out = otherwise;
        return 0;
    }
    int i = value_word(key, text, words);
    if (i < 0)
        return -1;
    *out = i;
    return 0;
}

int opts_unread(const struct opts *o, const char *who)
{
    for (int i = 0; i < o->n; i++) {
        if (!o->items[i].read)
            return fail("%s=%s: %s has no such setting; try: leave it out",
                        o->items[i].key, o->items[i].value, who);
    }
    return 0;
}
