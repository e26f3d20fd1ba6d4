// resume.c - the settings of a run that goes on from where another stopped.

#include "config/config.h"

#include "base/base.h"
#include "config/backends.h"
#include "config/keys.h"

#include <string.h>
#include <unistd.h>

// The run.json of the run that resume= goes on with; "" if there is none.
static int find_run(const struct run *r, char path[CONFIG_PATH])
{
    char parent[CONFIG_PATH], latest[CONFIG_PATH];
    path[0] = '\0';
    if (!*r->resume)
        return 0;
    if (!strcmp(r->resume, "auto")) {
        if (text_into(latest, sizeof latest, "%s/latest", r->out) ||
            text_into(path, CONFIG_PATH, "%s/run.json", r->out))
            return -1;
        if (access(latest, F_OK) || access(path, F_OK))
            path[0] = '\0';
        return 0;
    }
    if (text_into(path, CONFIG_PATH, "%s/run.json", r->resume))
        return -1;
    if (!access(path, F_OK))
        return 0;
    if (text_into(parent, sizeof parent, "%s/../run.json", r->resume))
        return -1;
    strcpy(path, access(parent, F_OK) ? "" : parent);
    return 0;
}

// What an earlier run asked of its backend and this one's cannot use.
static int drop_unfit(struct run *r)
{
    const struct backend *b = backend_row(r->sync);
    for (int i = 0; b && i < run_keys.n; i++) {
        const struct key *k = &run_keys.rows[i];
        if (!k->backend || !r->inherited[i] ||
            backend_takes(b, k->name, &r->settings))
            continue;
        CHECK(key_set(k, &r->settings, key_default(k)) == 0);
        r->asked[i] = r->inherited[i] = false;
    }
    return b ? 0 : -1;
}

int config_read(struct run *r, int nwords, char *const *words)
{
    struct run own = *r;
    char path[CONFIG_PATH], *before = path;
    if (config_parse(&own, nwords, words) || find_run(&own, path))
        return -1;
    if (!*path)
        *r = own;
    else if (config_parse(r, 1, &before) || config_parse(r, nwords, words))
        return -1;
    return drop_unfit(r);
}

int config_say_changes(const struct run *r)
{
    struct run then;
    char path[CONFIG_PATH], *before = path;
    config_defaults(&then);
    if (find_run(r, path))
        return -1;
    if (!*path)
        return 0;
    if (config_parse(&then, 1, &before))
        return -1;
    for (int i = 0; i < run_keys.n; i++) {
        const struct key *k = &run_keys.rows[i];
        char one[CONFIG_PATH], other[CONFIG_PATH];
        const char *was = key_show(k, key_base(k, &then), one);
        const char *is = key_show(k, key_base(k, r), other);
        if (key_repeats(k, was) && key_repeats(k, is) && strcmp(was, is))
            log_line("resume=%s: %s=%s, it was %s", r->resume, k->name,
                     *is ? is : "none", *was ? was : "none");
    }
    return 0;
}
