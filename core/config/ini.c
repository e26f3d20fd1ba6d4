// ini.c - applies words and INI files to a run. inih splits lines into keys and
// values.
//
// Sections only help the reader: keys are unique without them. next_line()
// gives the lines to inih, which by itself would silently split a line of more
// than 200 bytes in two, and take an indented line as part of the value above.

#include "config/config.h"

#include "base/base.h"
#include "base/file.h"
#include "config/keys.h"

#include <errno.h>
#include <ini.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { INI_LARGEST = 1 << 20 };

struct source {
    struct run *run;
    const char *name, *at, *end; // the text not yet read
    int line;                    // number of the last line given to inih
    char error[512];             // the first; "" while all is well
};

static void keep_error(struct source *s)
{
    if (s->error[0] == '\0')
        snprintf(s->error, sizeof s->error, "%s:%d: %s", s->name, s->line,
                 fail_message());
}

// The fgets() that inih calls: the next line without its indent, NULL at the
// end.
static char *next_line(char *out, int size, void *ctx)
{
    struct source *s = ctx;
    if (s->at == s->end || s->error[0])
        return NULL;
    s->line++;
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\t'))
        s->at++;
    const char *newline = memchr(s->at, '\n', (size_t)(s->end - s->at));
    size_t n = (size_t)((newline ? newline + 1 : s->end) - s->at);
    if (n >= (size_t)size) {
        fail("a line of %zu characters, at most %d fit", n, size - 2);
        keep_error(s);
        return NULL;
    }
    memcpy(out, s->at, n);
    out[n] = '\0';
    s->at += n;
    return out;
}

static int take(void *ctx, const char *section, const char *key,
                const char *value)
{
    struct source *s = ctx;
    const struct key *k = key_find(&run_keys, key);
    int rc;
    if (!strcmp(section, "experiment"))
        rc = fail("an experiment; try: lockstep run %s", s->name);
    else if (k && key_is_by_hand(k))
        rc = fail("%s= is no setting of a run; try: trainer %s=%s", key, key,
                  value);
    else if (k && k->type != KEY_TEXT && strstr(value, " #"))
        rc = fail("%s=%s: after a value a comment begins with ;", key, value);
    else
        rc = config_set(s->run, key, value);
    if (rc)
        keep_error(s);
    return s->error[0] == '\0';
}

int config_ini(struct run *r, const char *name, const char *text, size_t n)
{
    struct source s = {.run = r, .name = name, .at = text, .end = text + n};
    if (memchr(text, '\0', n))
        return fail("%s: a zero byte; not a text file", name);
    int bad_line = ini_parse_stream(next_line, &s, take, &s);
    if (s.error[0])
        return fail("%s", s.error);
    if (bad_line != 0)
        return fail("%s:%d: want key=value, [section] or # comment%s%s", name,
                    bad_line, bad_line == 1 ? "; for a text, try: data=" : "",
                    bad_line == 1 ? name : "");
    return 0;
}

int config_file(struct run *r, const char *path)
{
    struct stat is;
    if (stat(path, &is) == 0 && S_ISDIR(is.st_mode))
        return fail("%s: a folder; try: %s/run.json to repeat a run, or "
                    "resume=%s to go on with it",
                    path, path, path);
    FILE *f = file_open(path);
    if (!f)
        return fail("%s; want key=value or the path of an INI file or run.json",
                    fail_message());
    int err = -1;
    char *text = mem_alloc(INI_LARGEST, 1);
    if (text) {
        size_t n = fread(text, 1, INI_LARGEST, f);
        if (ferror(f))
            fail("%s: %s", path, strerror(errno));
        else if (n == INI_LARGEST)
            fail("%s: larger than 1 MiB; not a file of settings", path);
        else
            err = (*text == '{' ? config_json : config_ini)(r, path, text, n);
    }
    mem_free(text);
    fclose(f);
    return err;
}

int config_parse(struct run *r, int nwords, char *const *words)
{
    for (int i = 0; i < nwords; i++) {
        const char *equals = strchr(words[i], '=');
        char key[CONFIG_WORD];
        if (!equals) {
            if (config_file(r, words[i]))
                return -1;
            continue;
        }
        snprintf(key, sizeof key, "%.*s", (int)(equals - words[i]), words[i]);
        if (config_set(r, key, equals + 1))
            return -1;
    }
    return 0;
}
