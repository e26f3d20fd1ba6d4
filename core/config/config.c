// config.c - the keys of a run: set and show them. Every function loops over
// the table of keys.c.

#include "config/config.h"

#include "base/base.h"
#include "config/backends.h"
#include "config/key_parts.h"
#include "config/keys.h"

#include <stdarg.h>
#include <string.h>

// mesh= also decides how many workers there are and, if each is a part of the
// only replica, how they agree: unless the user does.
static void follow_mesh(struct run *r)
{
    bool alone = mesh_parts(&r->mesh) > 1 && mesh_size(&r->mesh, MESH_DP) == 1;
    if (r->mesh.n && !config_asked(r, "workers"))
        r->workers = mesh_ranks(&r->mesh);
    if (!config_asked(r, "sync"))
        snprintf(r->sync, sizeof r->sync, "%s",
                 alone ? backend_of_parts()->name : backend_at(0)->name);
}

int config_set(struct run *r, const char *key, const char *value)
{
    const struct key *k = key_must_find(&run_keys, key, value);
    if (!k || key_set(k, key_base(k, r), value))
        return -1;
    r->asked[k - run_keys.rows] = true;
    r->inherited[k - run_keys.rows] = false;
    if (k == key_find(&run_keys, "mesh"))
        follow_mesh(r);
    return 0;
}

void config_defaults(struct run *r)
{
    CHECK(run_keys.n <= CONFIG_KEYS);
    memset(r, 0, sizeof *r);
    for (int i = 0; i < run_keys.n; i++) {
        const struct key *k = &run_keys.rows[i];
        CHECK(key_set(k, key_base(k, r), key_default(k)) == 0);
    }
}

void config_each(const struct run *r, config_visit *fn, void *ctx)
{
    const struct backend *b = backend_find(r->sync);
    char buf[CONFIG_PATH];
    for (int i = 0; i < run_keys.n; i++) {
        const struct key *k = &run_keys.rows[i];
        if (k->backend ? backend_reads(b, k->name) : !key_is_by_hand(k))
            fn(ctx, k, key_show(k, key_base(k, r), buf));
    }
}

void config_each_asked(const struct run *r, bool again, config_visit *fn,
                       void *ctx)
{
    char buf[CONFIG_PATH];
    for (int i = 0; i < run_keys.n; i++) {
        const struct key *k = &run_keys.rows[i];
        const char *value = key_show(k, key_base(k, r), buf);
        if (r->asked[i] && (!again || key_repeats(k, value)))
            fn(ctx, k, value);
    }
}

bool config_asked(const struct run *r, const char *key)
{
    const struct key *k = key_find(&run_keys, key);
    CHECK(k);
    return r->asked[k - run_keys.rows];
}

const char *config_said(const struct run *r, const char *key,
                        char text[CONFIG_SAID])
{
    char value[CONFIG_PATH];
    const struct key *k = key_find(&run_keys, key);
    CHECK(k);
    snprintf(text, CONFIG_SAID, "%s=%s", key,
             key_show(k, key_base(k, r), value));
    return text;
}

const char *config_word(const struct run *r, const char *key)
{
    const struct key *k = key_find(&run_keys, key);
    CHECK(k && k->type == KEY_CHOICE);
    return key_show(k, key_base(k, r), NULL);
}

const char *config_mistake(const struct run *r, char text[CONFIG_PATH])
{
    const struct sync_mistake *m = &r->settings.mistake;
    char value[CONFIG_PATH];
    mistake_show(m, value);
    snprintf(text, CONFIG_PATH, "mistake=%.40s", value);
    return m->kind ? mistake_says(m) : NULL;
}

enum dtype config_format(const struct run *r)
{
    return r->precision == PRECISION_BF16   ? DTYPE_BF16
           : r->precision == PRECISION_FP16 ? DTYPE_F16
                                            : DTYPE_F32;
}

// ---- a backend's keys alone

void settings_defaults(struct sync_settings *s)
{
    struct run r;
    config_defaults(&r);
    *s = r.settings;
}

int settings_set(struct sync_settings *s, const char *key, const char *value)
{
    const struct key *k = key_must_find(&run_keys, key, value);
    if (!k)
        return -1;
    if (!k->backend)
        return fail("%s=%s: not a setting of a backend", key, value);
    return key_set(k, s, value);
}

// ---- what all workers must agree on

void config_line(struct config_lines *l, const char *fmt, ...)
{
    size_t left = sizeof l->text - l->n;
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(l->text + l->n, left, fmt, args);
    va_end(args);
    CHECK(n >= 0 && (size_t)n + 1 < left);
    l->n += (size_t)n;
    l->text[l->n++] = '\n';
    l->text[l->n] = '\0';
}

static void add_shared(void *ctx, const struct key *k, const char *value)
{
    if (!k->local)
        config_line(ctx, "%s=%s", k->name, value);
}

void config_add_run(struct config_lines *l, const struct run *r)
{
    config_each(r, add_shared, l);
}

void config_add_settings(struct config_lines *l, const struct sync_settings *s)
{
    char buf[CONFIG_PATH];
    for (int i = 0; i < run_keys.n; i++) {
        const struct key *k = &run_keys.rows[i];
        if (k->backend)
            add_shared(l, k, key_show(k, s, buf));
    }
}
