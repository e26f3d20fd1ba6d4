// resume.c - finds and applies the settings of the run that is resumed.

#include "config/config.h"

#include "base/base.h"
#include "config/backends.h"
#include "config/keys.h"
#include "config/mesh.h"

#include <string.h>
#include <unistd.h>

// Whether out= holds a file of this name.
static bool out_has(const struct run *r, const char *name)
{
    char path[CONFIG_PATH + CONFIG_WORD];
    snprintf(path, sizeof path, "%s/%s", r->out, name);
    return !access(path, F_OK);
}

// Writes the path of run.json of the run that resume= names, "" if there is
// none. 0, or -1 after fail().
static int find_run(const struct run *r, char path[CONFIG_PATH])
{
    char parent[CONFIG_PATH];
    bool is_auto = !strcmp(r->resume, "auto");
    path[0] = '\0';
    if (!*r->resume ||
        (is_auto && (!out_has(r, "latest") || !out_has(r, "run.json"))))
        return 0;
    if (text_into(path, CONFIG_PATH, "%s/run.json",
                  is_auto ? r->out : r->resume))
        return -1;
    if (!access(path, F_OK))
        return 0;
    if (text_into(parent, sizeof parent, "%s/../run.json", r->resume))
        return -1;
    strcpy(path, access(parent, F_OK) ? "" : parent);
    return 0;
}

static bool is_inherited(const struct run *r, const char *name)
{
    return r->inherited[key_find(&run_keys, name) - run_keys.rows];
}

// Sets a key to its default, if its value is that of the earlier run.
static void drop(struct run *r, const char *name)
{
    const struct key *k = key_find(&run_keys, name);
    if (!is_inherited(r, name))
        return;
    CHECK(key_set(k, key_base(k, r), key_default(k)) == 0);
    r->asked[k - run_keys.rows] = r->inherited[k - run_keys.rows] = false;
}

// A new mesh says how many workers there are and, if the earlier backend has no
// parts, which one sums over them: as in a run that begins.
static int drop_unmeshed(struct run *r)
{
    const struct backend *b = backend_find(r->sync);
    char mesh[CONFIG_PATH];
    if (!r->mesh.n || is_inherited(r, "mesh"))
        return 0;
    drop(r, "workers");
    if (!b->parts && mesh_parts(&r->mesh) > 1)
        drop(r, "sync");
    mesh_show(&r->mesh, mesh);
    return config_set(r, "mesh", mesh);
}

// Whether this run can compress gradients as the earlier run did.
static bool can_squeeze(const struct run *r, const struct backend *b)
{
    const struct sync_settings *s = &r->settings;
    bool moments = s->freeze && !backend_takes(b, "freeze", s);
    bool whole = s->squeeze == SQUEEZE_POWER || s->squeeze == SQUEEZE_DEMO;
    bool parts = b->shards || b->servers;
    return mesh_parts(&r->mesh) == 1 && s->wire == DTYPE_F32 && !moments &&
           !(whole && parts) && !(b->shards && s->shard >= SHARD_GRADS);
}

// Drops settings that the earlier run had for its backend, compressor or stages
// and that this run's backend, compressor or mesh cannot use.
static int drop_unfit(struct run *r)
{
    if (drop_unmeshed(r))
        return -1;
    const struct backend *b = backend_find(r->sync);
    int stages = mesh_size(&r->mesh, MESH_PP),
        up = mesh_size(&r->mesh, MESH_UP);
    if (!can_squeeze(r, b))
        drop(r, "squeeze");
    if (!config_takes_mistake(r, b))
        drop(r, "mistake");
    if (b->servers == 1 && r->settings.servers.count > 1)
        drop(r, "servers");
    for (int i = 0; r->settings.squeeze && config_sum_keys[i]; i++)
        drop(r, config_sum_keys[i]);
    if (mesh_size(&r->mesh, MESH_TP) == 1) {
        drop(r, "tp_sequence");
        drop(r, "tp_wire");
    }
    if (mesh_size(&r->mesh, MESH_CP) == 1 ||
        (up > 1 && r->attention_over == ATTENTION_HEADS))
        drop(r, "attention_over");
    if (r->stages.n != stages * r->chunks)
        drop(r, "stages");
    for (int i = 0; stages == 1 && config_stage_keys[i]; i++)
        drop(r, config_stage_keys[i]);
    for (int i = 0; i < run_keys.n; i++) {
        const struct key *k = &run_keys.rows[i];
        if (k->backend && (!backend_takes(b, k->name, &r->settings) ||
                           !config_squeeze_takes(r, k->name)))
            drop(r, k->name);
    }
    return 0;
}

int config_read(struct run *r, int nwords, char *const *words)
{
    struct run own = *r;
    char path[CONFIG_PATH];
    if (config_parse(&own, nwords, words) || find_run(&own, path))
        return -1;
    if (own.epochs > 0 && config_asked(&own, "steps"))
        return fail("epochs=%g sets steps, and steps=%d was asked for, too; "
                    "try: one of them",
                    own.epochs, own.steps);
    if (!*path)
        *r = own;
    else if (config_file(r, path) || config_parse(r, nwords, words))
        return -1;
    return drop_unfit(r);
}

int config_check_out(const struct run *r)
{
    bool run = out_has(r, "run.json"), latest = out_has(r, "latest");
    if (out_has(r, "command.txt"))
        return fail("out=%s: holds an experiment; try: another out=", r->out);
    if (run && !*r->resume)
        return fail("out=%s: holds a run; try: %sanother out=", r->out,
                    latest ? "resume=auto to go on with it, or " : "");
    if (run && out_has(r, "summary.json") && !latest &&
        !strcmp(r->resume, "auto"))
        return fail("resume=auto: out=%s holds a run that ended and left no "
                    "checkpoint to go on from; try: another out=",
                    r->out);
    return 0;
}

int config_check_hosts(const struct run *r)
{
    return r->had_hosts && !config_asked(r, "hosts")
               ? fail("the earlier run had hosts=, and its run.json cannot "
                      "name hosts to log in to; try: hosts=FILE, or hosts= "
                      "for this host alone")
               : 0;
}

int config_say_changes(const struct run *r)
{
    struct run then;
    char path[CONFIG_PATH];
    config_defaults(&then);
    if (find_run(r, path))
        return -1;
    if (!*path) {
        if (!strcmp(r->resume, "auto") && out_has(r, "run.json") &&
            !out_has(r, "summary.json"))
            log_line("resume=auto: %s holds no checkpoint: training begins "
                     "at step 1",
                     r->out);
        return 0;
    }
    if (config_file(&then, path))
        return -1;
    for (int i = 0; i < run_keys.n; i++) {
        const struct key *k = &run_keys.rows[i];
        char one[CONFIG_PATH], other[CONFIG_PATH];
        const char *was = key_show(k, key_base(k, &then), one);
        const char *is = key_show(k, key_base(k, r), other);
        if (key_repeats(k, was) && key_repeats(k, is) && strcmp(was, is))
            log_line("resume=%s: %s%s=%s, it was %s", r->resume,
                     *is ? "" : "without ", k->name, is,
                     *was ? was : "not set");
    }
    return 0;
}

int config_fail_state(const struct run *r)
{
    struct run then;
    char why[512], path[CONFIG_PATH], was[CONFIG_PATH], is[CONFIG_PATH];
    snprintf(why, sizeof why, "%s", fail_message());
    config_defaults(&then);
    if (find_run(r, path) || !*path || config_file(&then, path))
        return fail("%s", why);
    const char *name =
        then.optimizer == r->optimizer ? "momentum" : "optimizer";
    const struct key *k = key_find(&run_keys, name);
    const char *old = key_show(k, key_base(k, &then), was);
    const char *new = key_show(k, key_base(k, r), is);
    return strcmp(old, new)
               ? fail("%s: the run was made with %s=%s, not %s=%s; try: %s=%s",
                      why, name, old, name, new, name, old)
               : fail("%s", why);
}
