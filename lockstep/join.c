// join.c - makes an experiment from existing runs. Each run becomes a cell.
//
//     DIR/runs.ini          a cell for each run, with the settings asked for
//     DIR/command.txt       marks DIR as an experiment
//     DIR/cells/NAME/r1     a link to the run's folder

#include "lockstep/study.h"

#include "base/base.h"
#include "base/file.h"
#include "config/backends.h"
#include "config/keys.h"
#include "lockstep/say.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char ini_name[] = "runs.ini";

// Makes the name of a run from the last part of its path, or from the last two
// parts for a repeat of an experiment's cell (.. /CELL/r2). Characters that are
// not allowed in an INI section or a folder's name become '_'.
static int name_run(char name[64], const char *whole)
{
    const char *last = strrchr(whole, '/') + 1, *from = last;
    if (*last == 'r' && last[1 + strspn(last + 1, "0123456789")] == '\0')
        while (from > whole + 1 && (from == last || from[-1] != '/'))
            from--;
    if (text_into(name, 64, "%s", from))
        return -1;
    for (char *p = name; *p; p++)
        if (strchr(" /,;:[]=\"'\\", *p))
            *p = '_';
    return 0;
}

static int add_settings(struct say *ini, const cJSON *run, const char *dir)
{
    const cJSON *e, *set = cJSON_GetObjectItemCaseSensitive(run, "asked");
    if (!set)
        set = cJSON_GetObjectItemCaseSensitive(run, "settings");
    const cJSON *sync = cJSON_GetObjectItemCaseSensitive(run, "backend");
    if (!cJSON_IsString(sync) || !backend_find(sync->valuestring))
        return fail("%s/run.json: names no backend of this build", dir);
    say(ini, "sync = %s\n", sync->valuestring);
    cJSON_ArrayForEach(e, set)
    {
        if (!strcmp(e->string, "sync") || !key_find(&run_keys, e->string))
            continue;
        if (cJSON_IsNumber(e))
            say(ini, "%s = %.17g\n", e->string, e->valuedouble);
        else if (cJSON_IsString(e) && !strpbrk(e->valuestring, "\n;"))
            say(ini, "%s = %s\n", e->string, e->valuestring);
    }
    return 0;
}

// If an earlier run has this name, appends _N, where N is the run's number.
static int make_unique(char name[64], const struct say *ini, int i)
{
    char head[80];
    snprintf(head, sizeof head, "[cell %s]\n", name);
    size_t at = strlen(name);
    return strstr(ini->text, head) ? text_into(name + at, 64 - at, "_%d", i + 1)
                                   : 0;
}

static int add_run(struct say *ini, const char *dir, const char *out, int i)
{
    char path[CONFIG_PATH], name[64], *text = NULL;
    char *whole = realpath(dir, NULL);
    cJSON *run = NULL;
    int rc = whole ? 0 : fail("%s: %s", dir, strerror(errno));
    if (!rc)
        rc = name_run(name, whole) || make_unique(name, ini, i) ||
             text_into(path, sizeof path, "%s/run.json", whole);
    if (!rc && access(path, R_OK))
        rc = fail("%s: not a run, it has no run.json; try: folders of runs, "
                  "as DIR/cells/CELL/r1 of an experiment",
                  dir);
    if (!rc)
        rc = (text = file_read(path, 1 << 20)) ? 0 : -1;
    if (!rc && !(run = cJSON_Parse(text)))
        rc = fail("%s: not JSON", path);
    if (!rc) {
        say(ini, "[cell %s]\n", name);
        rc = add_settings(ini, run, dir) ||
             text_into(path, sizeof path, "%s/cells/%s", out, name) ||
             file_make_folder(path) < 0 ||
             text_into(path, sizeof path, "%s/cells/%s/r1", out, name);
    }
    if (!rc && unlink(path) && errno != ENOENT)
        rc = fail("%s: %s", path, strerror(errno));
    if (!rc && symlink(whole, path))
        rc = fail("%s: %s", path, strerror(errno));
    mem_free(text);
    cJSON_Delete(run);
    free(whole);
    return rc ? -1 : 0;
}

// Checks that `out` has no experiment, except one that study_join() made. 0, or
// -1 after fail().
static int check_out(const char *out)
{
    char path[CONFIG_PATH];
    if (text_into(path, sizeof path, "%s/command.txt", out))
        return -1;
    bool used = access(path, F_OK) == 0;
    if (text_into(path, sizeof path, "%s/%s", out, ini_name))
        return -1;
    return used && access(path, F_OK)
               ? fail("out=%s: has an experiment already; try: another out=",
                      out)
               : 0;
}

int study_join(int n, char *const *dirs, const char *out)
{
    enum { SIZE = 1 << 18 };
    char path[CONFIG_PATH];
    struct say ini = {.text = mem_alloc(SIZE, 1), .size = SIZE};
    int rc = ini.text ? check_out(out) : -1;
    if (!rc && file_make_folder(out) < 0)
        rc = -1;
    if (!rc)
        say(&ini, "[experiment]\ntitle = Runs side by side\nrepeat = 1\n");
    for (int i = 0; !rc && i < n; i++)
        rc = add_run(&ini, dirs[i], out, i);
    if (!rc)
        rc = text_into(path, sizeof path, "%s/%s", out, ini_name) ||
             file_replace_text(path, ini.text) ||
             text_into(path, sizeof path, "%s/command.txt", out) ||
             file_replace_text(path, "runs.ini\n");
    mem_free(ini.text);
    return rc ? -1 : 0;
}
