// help.c - writes a page of text with every key, from the table.

#include "config/config.h"

#include "config/backends.h"
#include "config/keys.h"
#include "config/value.h"

#include <string.h>

// AT_DEFAULT, AT_ALLOWED: columns of a key's first line. AT_HELP: the column of
// its help. WIDTH: of the page.
enum { AT_DEFAULT = 22, AT_ALLOWED = 39, AT_HELP = 6, WIDTH = 80 };

// Writes the values that are allowed after '='.
static void allowed(const struct key *k, char out[KEY_TEXT_MOST])
{
    char min[32], max[32];
    size_t at = 0;
    bool unit = k->unit && k->type <= KEY_NUMBER;
    out[0] = '\0';
    if (k->type == KEY_INT && k->min == 0 && k->max == 1) {
        snprintf(out, KEY_TEXT_MOST, "0|1");
    } else if (k->type <= KEY_NUMBER) {
        snprintf(out, KEY_TEXT_MOST, "%s..%s%s%s", value_limit(min, k->min),
                 value_limit(max, k->max), unit ? " " : "",
                 unit ? k->unit : "");
    } else if (k->words) {
        for (int i = 0; k->words[i]; i++)
            at += (size_t)snprintf(out + at, KEY_TEXT_MOST - at, "%s%s",
                                   i ? "|" : "", k->words[i]);
    } else {
        snprintf(out, KEY_TEXT_MOST, "%s", k->unit ? k->unit : "text");
    }
}

// The default. For a default of 0: what 0 means, if that fits the column.
static const char *usual(const struct key *k)
{
    const char *value = key_default(k);
    if (k->zero && strcmp(value, "0") == 0 &&
        strlen(k->zero) < AT_ALLOWED - AT_DEFAULT)
        return k->zero;
    return value[0] ? value : "-";
}

// Writes what a key does: "[sps, dps]" or "[all but outer]" if only some
// backends of several workers read it; its help; and the meaning of 0.
static void describe(const struct key *k, char out[KEY_TEXT_MOST])
{
    char names[2][128] = {"", ""}; // of those that do not read it; that do
    int n[2] = {0, 0};
    const struct backend *b;
    for (int i = 0; k->backend && (b = backend_at(i)); i++) {
        bool reads = backend_reads(b, k->name);
        size_t at = strlen(names[reads]);
        if (b->launch != LAUNCH_ALONE)
            snprintf(names[reads] + at, sizeof names[reads] - at, "%s%s",
                     n[reads]++ ? ", " : "", b->name);
    }
    out[0] = '\0';
    if (n[false] > 0 && n[true] <= n[false] + 1)
        snprintf(out, KEY_TEXT_MOST, "[%s] ", names[true]);
    else if (n[false] > 0)
        snprintf(out, KEY_TEXT_MOST, "[all but %s] ", names[false]);
    size_t at = strlen(out);
    snprintf(out + at, KEY_TEXT_MOST - at, "%s%s%s%s", k->help,
             k->zero ? " (0: " : "", k->zero ? k->zero : "",
             k->zero ? ")" : "");
}

void key_describe(const struct key *k, struct key_text *out)
{
    allowed(k, out->allowed);
    describe(k, out->about);
    out->usual = usual(k);
}

// Writes text from column `from` on, in as many lines as it needs. The first
// line is already at that column. A line ends at a blank or after '|'.
static void put_wrapped(FILE *f, const char *text, int from)
{
    const size_t width = (size_t)(WIDTH - from);
    while (strlen(text) > width) {
        size_t n = width;
        while (n > 0 && text[n] != ' ' && text[n - 1] != '|')
            n--;
        n = n ? n : width;
        fprintf(f, "%.*s\n%*s", (int)n, text, from, "");
        text += n + (text[n] == ' ');
    }
    fprintf(f, "%s\n", text);
}

void key_help(FILE *f, const struct key_table *t)
{
    const char *group = "";
    for (int i = 0; i < t->n; i++) {
        const struct key *k = &t->rows[i];
        struct key_text text;
        key_describe(k, &text);
        if (strcmp(k->group, group) != 0)
            fprintf(f, "\n%-*s%-*s%s\n", AT_DEFAULT, k->group,
                    AT_ALLOWED - AT_DEFAULT, "default", "allowed");
        group = k->group;
        fprintf(f, "  %-*s %-*s ", AT_DEFAULT - 3, k->name,
                AT_ALLOWED - AT_DEFAULT - 1, text.usual);
        put_wrapped(f, text.allowed, AT_ALLOWED);
        fprintf(f, "%*s", AT_HELP, "");
        put_wrapped(f, text.about, AT_HELP);
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
