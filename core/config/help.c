// help.c - every key as a page of text, from the table.

#include "config/config.h"

#include "config/backends.h"
#include "config/keys.h"
#include "config/value.h"

#include <string.h>

// What may stand after '='.
static void allowed(const struct key *k, char out[96])
{
    char min[32], max[32];
    size_t at = 0;
    out[0] = '\0';
    if (k->type == KEY_INT && k->min == 0 && k->max == 1) {
        snprintf(out, 96, "0|1");
    } else if (k->type <= KEY_NUMBER) {
        snprintf(out, 96, "%s..%s", value_text(min, k->min),
                 value_text(max, k->max));
    } else if (k->words) {
        for (int i = 0; k->words[i]; i++)
            at += (size_t)snprintf(out + at, 96 - at, "%s%s", i ? "|" : "",
                                   k->words[i]);
    } else {
        snprintf(out, 96, "%s", k->unit ? k->unit : "text");
    }
}

// The default, with what 0 stands for.
static void usual(const struct key *k, char out[64])
{
    const char *value = key_default(k);
    bool zero = k->zero && strcmp(value, "0") == 0;
    snprintf(out, 64, "%s", zero ? k->zero : value[0] ? value : "-");
}

// "sps, dps" where not all backends of several workers read a key; else "".
static void readers(const struct key *k, char out[128])
{
    const struct backend *b;
    bool all = true;
    out[0] = '\0';
    for (int i = 0; k->backend && (b = backend_at(i)); i++) {
        size_t at = strlen(out);
        if (backend_reads(b, k->name))
            snprintf(out + at, 128 - at, "%s%s", at ? ", " : "", b->name);
        else
            all &= b->launch == LAUNCH_ALONE;
    }
    if (all)
        out[0] = '\0';
}

void key_help(FILE *f, const struct key_table *t)
{
    const char *group = "";
    for (int i = 0; i < t->n; i++) {
        const struct key *k = &t->rows[i];
        char values[96], value[64], whose[128], left[256];
        allowed(k, values);
        usual(k, value);
        readers(k, whose);
        if (strcmp(k->group, group) != 0)
            fprintf(f, "\n%-22s%-15s%-31s%s\n", k->group, "default", "allowed",
                    "what it is");
        group = k->group;
        bool unit = k->unit && k->type <= KEY_NUMBER;
        snprintf(left, sizeof left, "  %-19s %-14s %s%s%s", k->name, value,
                 values, unit ? " " : "", unit ? k->unit : "");
        bool fits = strlen(left) <= 67; // else the help begins a line
        fprintf(f, "%s%s%-*s %s%s%s", fits ? "" : left, fits ? "" : "\n", 67,
                fits ? left : "", whose, *whose ? ": " : "", k->help);
        if (k->zero)
            fprintf(f, " (0: %s)", k->zero);
        fprintf(f, "\n");
    }
}

void key_manual(FILE *f, const struct key_table *t,
                void (*line)(FILE *f, const char *text))
{
    const char *group = "";
    char values[96], value[64], whose[128], text[512];
    for (int i = 0; i < t->n; i++) {
        const struct key *k = &t->rows[i];
        allowed(k, values);
        usual(k, value);
        readers(k, whose);
        if (strcmp(k->group, group) != 0)
            fprintf(f, ".SS %s\n", k->group);
        group = k->group;
        bool unit = k->unit && k->type <= KEY_NUMBER;
        snprintf(text, sizeof text, "%s=%s%s%s [%s]", k->name, values,
                 unit ? " " : "", unit ? k->unit : "", value);
        fputs(".TP\n.B ", f);
        line(f, text);
        snprintf(text, sizeof text, "%s%s%s%s%s%s", whose, *whose ? ": " : "",
                 k->help, k->zero ? " (0: " : "", k->zero ? k->zero : "",
                 k->zero ? ")" : "");
        line(f, text);
    }
}

void config_help(FILE *f)
{
    fprintf(f, "Settings are key=value words, or lines of an INI file; the "
               "last word wins.\n");
    key_help(f, &run_keys);
    fprintf(f, "\nsync=\n");
    for (int i = 0; backend_at(i); i++)
        fprintf(f, "  %-15s %s\n", backend_at(i)->name, backend_at(i)->help);
}
