// keys.h - one row a key: what config.c, opts.c and --help are loops over.

#ifndef CONFIG_KEYS_H
#define CONFIG_KEYS_H

#include "config/config.h"

enum key_type {
    KEY_INT,    // int
    KEY_INT64,  // int64_t
    KEY_NUMBER, // double
    KEY_CHOICE, // int, an index into words
    KEY_WORD,   // char[CONFIG_WORD], one of words where there are any
    KEY_TEXT,   // char[CONFIG_PATH]: a path, an endpoint
};

// Where a backend's key lies: not in struct run but in its sync_opts.
#define KEY_IN_OPTS ((size_t)-1)

struct key {
    const char *group;        // of --help
    const char *name, *value; // value: the default; of KEY_IN_OPTS for help
    enum key_type type;
    size_t off; // in struct run
    double min, max;
    const char *zero; // what 0 means, where 0 is allowed beside [min, max]
    const char *const *words; // NULL-terminated, or NULL
    bool local;               // workers may differ in it
    const char *unit, *help;
    int (*check)(const char *key, const char *value); // of text; may be NULL
};

extern const struct key key_table[];
extern const int key_count;

// NULL if there is none.
const struct key *key_find(const char *name);

// The member of struct run that a key names.
static inline void *key_member(const struct run *r, const struct key *k)
{
    return (char *)(uintptr_t)r + k->off;
}

// ---- opts as text: "key=value,key=value". A comma separates only where a key
// and '=' follow, so that a value may be a list: "servers=tcp://a:1,tcp://b:2".

struct opts_item {
    const char *key, *value; // into the text
    size_t key_len, value_len;
};

// The item at `text` into *out; returns where the next begins, NULL if there
// is no item (the end, or text that does not begin with key=).
const char *opts_item(const char *text, struct opts_item *out);

#endif
