// help.c - writes a page of text with every key, from the table.

#include "config/config.h"

#include "config/backends.h"
#include "config/keys.h"
#include "config/value.h"

#include <string.h>

// AT_DEFAULT, AT_ALLOWED: columns of a key's first line. AT_HELP: the column of
// its help. WIDTH: of the page.
enum {
    AT_DEFAULT = 22,
    AT_ALLOWED = 39,
    AT_HELP = 6,
    WIDTH = 80,
    TEXT = KEY_TEXT_MOST
};

// Writes the values that are allowed after '='.
static void allowed(const struct key *k, char out[TEXT])
{
    char min[32], max[32];
    size_t at = 0;
    bool unit = k->unit && k->type <= KEY_NUMBER;
    out[0] = '\0';
    if (k->type == KEY_INT && k->min == 0 && k->max == 1) {
        snprintf(out, TEXT, "0|1");
    } else if (k->type <= KEY_NUMBER) {
        snprintf(out, TEXT, "%s..%s%s%s", value_limit(min, k->min),
                 value_limit(max, k->max), unit ? " " : "",
                 unit ? k->unit : "");
    } else if (k->words) {
        for (int i = 0; k->words[i]; i++)
            at += (size_t)snprintf(out + at, TEXT - at, "%s%s", i ? "|" : "",
                                   k->words[i]);
    } else {
        snprintf(out, TEXT, "%s", k->unit ? k->unit : "text");
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

// Whether b has several workers and reads the key. With reads = false: whether
// it has several workers and does not read the key.
static bool is_among(const struct backend *b, const struct key *k, bool reads)
{
    return b->launch != LAUNCH_ALONE && backend_reads(b, k->name) == reads;
}

// Adds the names of the backends that read the key, or of those that do not.
// Returns how many there are.
static int list_readers(const struct key *k, bool reads, char *out, size_t size)
{
    const struct backend *b;
    int n = 0;
    for (int i = 0; (b = backend_at(i)); i++) {
        size_t at = strlen(out);
        if (is_among(b, k, reads))
            snprintf(out + at, size - at, "%s%s", n++ ? ", " : "", b->name);
    }
    return n;
}

// Writes what a key does: "[sps, dps]" or "[all but outer]" if only some
// backends of several workers read it; its help; and the meaning of 0.
static void describe(const struct key *k, char out[TEXT])
{
    char with[128] = "", without[128] = "";
    out[0] = '\0';
    if (k->backend) {
        int yes = list_readers(k, true, with, sizeof with);
        int no = list_readers(k, false, without, sizeof without);
        if (no > 0 && yes <= no + 1)
            snprintf(out, TEXT, "[%s] ", with);
        else if (no > 0)
            snprintf(out, TEXT, "[all but %s] ", without);
    }
    size_t at = strlen(out);
    snprintf(out + at, TEXT - at, "%s%s%s%s", k->help, k->zero ? " (0: " : "",
             k->zero ? k->zero : "", k->zero ? ")" : "");
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
    char text[TEXT];
    for (int i = 0; i < t->n; i++) {
        const struct key *k = &t->rows[i];
        if (strcmp(k->group, group) != 0)
            fprintf(f, "\n%-*s%-*s%s\n", AT_DEFAULT, k->group,
                    AT_ALLOWED - AT_DEFAULT, "default", "allowed");
        group = k->group;
        fprintf(f, "  %-*s %-*s ", AT_DEFAULT - 3, k->name,
                AT_ALLOWED - AT_DEFAULT - 1, usual(k));
        allowed(k, text);
        put_wrapped(f, text, AT_ALLOWED);
        describe(k, text);
        fprintf(f, "%*s", AT_HELP, "");
        put_wrapped(f, text, AT_HELP);
    }
}

void key_describe(const struct key *k, struct key_text *out)
{
    allowed(k, out->allowed);
    describe(k, out->about);
    out->usual = usual(k);
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
