// keys.h - one row for each key: parsing, showing and --help are loops over
// rows.
//
// A row says where in a plain struct the key's value is. The keys of a run are
// one table (keys.c). A program with other keys has a table of its own.

#pragma once

#include "config/config.h"

enum key_type {
    KEY_INT,    // int
    KEY_INT64,  // int64_t or size_t
    KEY_NUMBER, // double
    KEY_CHOICE, // int or an enum: an index into words
    KEY_WORD,   // char[CONFIG_WORD]; one of `words`, unless that is NULL
    KEY_TEXT,   // char[CONFIG_PATH]: a path, an endpoint
    KEY_PARTS,  // a struct of several parts, with the row's read and show
};

struct key {
    const char *group;        // of --help
    const char *name, *value; // value: the default; NULL: the first word
    enum key_type type;
    size_t off;   // bytes from the start of the struct to its member
    bool backend; // the struct is struct sync_settings, not struct run
    double min, max;
    const char *zero; // meaning of 0, if 0 is allowed outside [min, max]
    const char *const *words; // NULL-terminated, or NULL
    bool local;               // workers may have different values
    bool once; // for one start of a run: not used when the run is repeated
    const char *unit, *help;
    // Checks the text. 0, or -1 after fail(). May be NULL.
    int (*check)(const char *key, const char *value);
    // KEY_PARTS: read sets *at from text, 0 or -1 after fail(). show writes *at
    // as text.
    int (*read)(void *at, const char *key, const char *value);
    void (*show)(const void *at, char text[CONFIG_PATH]);
    const char *was; // its name in earlier versions, or NULL
};

struct key_table {
    const struct key *rows;
    int n;
    const char *all; // the command that lists all keys, for errors
};

extern const struct key_table run_keys; // of struct run: keys.c

// Whether the key is only for a worker that is started by hand.
bool key_is_by_hand(const struct key *k);

// The names of the keys that need stages (mesh=ppN), NULL-terminated.
extern const char *const config_stage_keys[];

// The row of a key, or NULL if there is none. key_must_find() then also calls
// fail() with the key's new name, or the nearest name.
const struct key *key_find(const struct key_table *t, const char *name);
const struct key *key_must_find(const struct key_table *t, const char *name,
                                const char *value);

// The key that had this name in an earlier version; NULL if none had.
const struct key *key_renamed(const struct key_table *t, const char *name);

// Sets the key's member of the struct at `base` from text. 0, or -1 after
// fail() that names the key, the value and what is allowed.
int key_set(const struct key *k, void *base, const char *value);

// A check for names of presets and files. The code that looks them up later
// says whether they exist.
int key_check_not_empty(const char *key, const char *value);

// The value as text, in buf or in the member itself.
const char *key_show(const struct key *k, const void *base,
                     char buf[CONFIG_PATH]);

// key_defaults() sets every member to its default. key_words() then applies n
// words "key=value"; the last word wins. 0, or -1 after fail().
void key_defaults(const struct key_table *t, void *base);
int key_words(const struct key_table *t, void *base, int n, char *const *words);

// Whether a key with this value is set again when the run is repeated or
// resumed: not if key.once is true or the value has an endpoint.
bool key_repeats(const struct key *k, const char *value);

// Writes every row with its default, allowed values, unit and help.
void key_help(FILE *f, const struct key_table *t);

// What it writes about one row: the allowed values, the help, the default.
enum { KEY_TEXT_MOST = 512 };
struct key_text {
    char allowed[KEY_TEXT_MOST], about[KEY_TEXT_MOST];
    const char *usual;
};
void key_describe(const struct key *k, struct key_text *out);

static inline const char *key_default(const struct key *k)
{
    return k->value ? k->value : k->words[0];
}

static inline bool key_is_number(const struct key *k)
{
    return k->type <= KEY_NUMBER;
}

// The struct of a run that holds the key's member.
static inline void *key_base(const struct key *k, const struct run *r)
{
    const void *base = k->backend ? (const void *)&r->settings : r;
    return (void *)(uintptr_t)base;
}
