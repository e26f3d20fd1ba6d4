// keys.h - one row a key: what parsing, showing and --help are loops over.
//
// A table of rows says where in a plain struct each key's value lies. The keys
// of a run are one table (keys.c); a program with words of its own has another.

#ifndef CONFIG_KEYS_H
#define CONFIG_KEYS_H

#include "config/config.h"

enum key_type {
    KEY_INT,    // int
    KEY_INT64,  // int64_t or size_t
    KEY_NUMBER, // double
    KEY_CHOICE, // int or an enum: an index into words
    KEY_WORD,   // char[CONFIG_WORD], one of words where there are any
    KEY_TEXT,   // char[CONFIG_PATH]: a path, an endpoint
    KEY_PARTS,  // a struct of several parts: the row's own read and show
};

struct key {
    const char *group;        // of --help
    const char *name, *value; // value: the default; NULL: the first word
    enum key_type type;
    size_t off;   // in the struct that the table is about
    bool backend; // of a run: in its `settings` instead
    double min, max;
    const char *zero; // what 0 means, where 0 is allowed beside [min, max]
    const char *const *words; // NULL-terminated, or NULL
    bool local;               // workers may differ in it
    bool once; // of one start of a run: not repeated with the run
    const char *unit, *help;
    int (*check)(const char *key, const char *value); // of text; may be NULL
    // KEY_PARTS: text into *at and back. read: 0, or -1 after fail().
    int (*read)(void *at, const char *key, const char *value);
    void (*show)(const void *at, char text[CONFIG_PATH]);
    const char *was; // its name in earlier versions; NULL: the same
};

struct key_table {
    const struct key *rows;
    int n;
    const char *all; // the command that lists them: for errors
};

extern const struct key_table run_keys; // of struct run: keys.c

// Whether it turns a mistake on: something that is wrong on purpose.
bool key_is_mistake(const struct key *k);

// The keys of a run that are about stages (mesh=ppN), NULL-terminated.
extern const char *const config_stage_keys[];

// NULL if there is none; key_must_find() then says by fail() how it is called
// now, or which is nearest.
const struct key *key_find(const struct key_table *t, const char *name);
const struct key *key_must_find(const struct key_table *t, const char *name);

// The key that had this name in an earlier version; NULL if none had.
const struct key *key_renamed(const struct key_table *t, const char *name);

// The value from text into *base, the struct that holds the row's member. 0, or
// -1 after fail() that names key, value and what is allowed.
int key_set(const struct key *k, void *base, const char *value);

// The value as text: buf, or the member itself.
const char *key_show(const struct key *k, const void *base,
                     char buf[CONFIG_PATH]);

// Every row at its default; then words "key=value", of which the last wins. 0,
// or -1 after fail().
void key_defaults(const struct key_table *t, void *base);
int key_words(const struct key_table *t, void *base, int n, char *const *words);

// Whether a key with this value belongs to a run however often it is started:
// not its folder, or an endpoint.
bool key_repeats(const struct key *k, const char *value);

// Every row with its default, allowed values, unit and help.
void key_help(FILE *f, const struct key_table *t);

// The same in roff, as a list; line() writes a line of text and a newline.
void key_manual(FILE *f, const struct key_table *t,
                void (*line)(FILE *f, const char *text));

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

#endif
