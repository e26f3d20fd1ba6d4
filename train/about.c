// about.c - writes what the readers of a run have to know about it.

#include "train/about.h"

#include "base/base.h"
#include "config/backends.h"
#include "config/config.h"
#include "config/keys.h"
#include "config/mesh.h"
#include "config/value.h"
#include "data/data.h"
#include "data/token_file.h"
#include "telemetry/manifest.h"
#include "train/run_law.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FORMAT = 3 };

static void add_setting(void *ctx, const struct key *k, const char *value)
{
    if (key_is_number(k))
        manifest_number(ctx, k->name, strtod(value, NULL));
    else
        manifest_text(ctx, k->name, value);
}

static void add_settings(struct manifest *m, const struct about *a)
{
    manifest_begin(m, "asked");
    config_each_asked(a->asked, true, add_setting, m);
    manifest_end(m);
    manifest_begin(m, "effective");
    config_each(a->effective, add_setting, m);
    manifest_end(m);
}

// ---- the way

static bool is_ignored(const struct run *r, const struct key *k)
{
    return k->backend && !backend_reads(backend_find(r->sync), k->name);
}

static void add_ignored(struct manifest *m, const struct run *r)
{
    const char *names[CONFIG_KEYS];
    int n = 0;
    for (int i = 0; i < run_keys.n; i++)
        if (is_ignored(r, &run_keys.rows[i]))
            names[n++] = run_keys.rows[i].name;
    manifest_texts(m, "ignores", n, names);
}

static void add_way(struct manifest *m, const struct about *a)
{
    const struct run *r = a->effective;
    char promise[CONFIG_PATH];
    const char *late = // if which gradients count depends on who is late
        key_show(key_find(&run_keys, "consistency"), &r->settings, promise);
    if (r->settings.consistency.kind == CONSISTENCY_BSP)
        late = r->settings.backup ? "backup" : "";
    manifest_begin(m, "way");
    manifest_number(m, "servers", run_law_servers(r));
    manifest_bool(m, "beside", run_law_beside(r, a->world));
    manifest_bool(m, "apart", backend_find(r->sync)->apart);
    manifest_number(m, "every", r->settings.every);
    manifest_text(m, "promise", late);
    manifest_number(m, "parts", mesh_parts(&r->mesh));
    manifest_number(m, "stages", mesh_size(&r->mesh, MESH_PP));
    manifest_number(m, "slices", mesh_size(&r->mesh, MESH_TP));
    manifest_number(m, "pieces", mesh_pieces(&r->mesh));
    add_ignored(m, r);
    manifest_end(m);
}

// ---- the training

static bool is_of_model(const struct key *k)
{
    return !strcmp(k->group, "model");
}

// Whether the losses depend on a key.
static bool makes_training(const struct key *k)
{
    // Besides those of the groups model and optimizer.
    static const char *const more[] = {
        "vocab",   "val_fraction", "order",          "seed",        "steps",
        "mistake", "attention",    "wire",           "consistency", "backup",
        "every",   "outer_lr",     "outer_momentum", "tp_wire",     NULL,
    };
    if (!strcmp(k->name, "lr_scale") || !strcmp(k->name, "base_batch"))
        return false; // add_value() writes the learning rate they result in
    return is_of_model(k) || !strcmp(k->group, "optimizer") ||
           value_known(k->name, more);
}

// Of these the losses depend if gradients are compressed: buckets are
// compressed one by one.
static bool is_of_squeeze(const struct key *k)
{
    static const char *const names[] = {
        "squeeze",
        "density",
        "scope",
        "levels",
        "squeeze_rank",
        "feedback",
        "bucket",
        "bucket_mb",
        "squeeze_after",
        "freeze",
        "momentum_correction",
        NULL,
    };
    return value_known(k->name, names);
}

static double global_batch(const struct about *a)
{
    const struct run *r = a->effective;
    return (double)r->batch * r->accum * a->world / mesh_parts(&r->mesh);
}

static void add_value(struct manifest *m, const struct about *a,
                      const struct key *k)
{
    const struct run *r = a->effective;
    char buf[CONFIG_PATH], number[32];
    const char *value =
        is_ignored(r, k) ? key_default(k) : key_show(k, key_base(k, r), buf);
    if (!strcmp(k->name, "every") && !backend_find(r->sync)->apart)
        value = "none"; // it exchanges gradients in every step
    if (!strcmp(k->name, "lr") || !strcmp(k->name, "min_lr")) {
        double factor = config_lr_factor((enum lr_scale)r->lr_scale,
                                         global_batch(a), r->base_batch);
        snprintf(number, sizeof number, "%.6g", strtod(value, NULL) * factor);
        value = number;
    }
    manifest_text(m, k->name, value);
}

static void add_training(struct manifest *m, const struct about *a)
{
    char number[32];
    bool squeezes = a->effective->settings.squeeze;
    manifest_begin(m, "training");
    for (int i = 0; i < run_keys.n; i++)
        if (makes_training(&run_keys.rows[i]) ||
            (squeezes && is_of_squeeze(&run_keys.rows[i])))
            add_value(m, a, &run_keys.rows[i]);
    snprintf(number, sizeof number, "%.0f", global_batch(a));
    manifest_text(m, "global batch", number);
    snprintf(number, sizeof number, "%d", a->world);
    if (a->effective->dropout > 0 || squeezes) // each rank's own choices
        manifest_text(m, "workers", number);
    manifest_end(m);
    manifest_begin(m, "task");
    for (int i = 0; i < run_keys.n; i++)
        if (is_of_model(&run_keys.rows[i]) &&
            strcmp(run_keys.rows[i].name, "precision"))
            add_value(m, a, &run_keys.rows[i]);
    manifest_end(m);
}

// ---- the law

static const char *verb_name(int v)
{
    return v == RUN_LAW_PUSH ? "push" : group_verb_name((enum group_verb)v);
}

static void add_law(struct manifest *m, const struct about *a)
{
    struct run_law law;
    run_law(a->effective, a->model, a->world, a->transport, a->joins, &law);
    manifest_begin(m, "law");
    manifest_number(m, "bytes_tx", law.bytes);
    manifest_begin(m, "by_verb");
    for (int v = 0; v < RUN_LAW_VERBS; v++)
        if (law.by_verb[v] > 0)
            manifest_number(m, verb_name(v), law.by_verb[v]);
    manifest_end(m);
    manifest_number(m, "exchange_s", law.exchange_s);
    manifest_number(m, "bubble_share", law.bubble);
    manifest_number(m, "stage_tx", law.stages);
    manifest_number(m, "slice_tx", law.slices);
    manifest_number(m, "piece_tx", law.pieces);
    manifest_end(m);
}

// ---- all of it

void about_write(struct manifest *m, const struct about *a)
{
    char text[CONFIG_PATH];
    bool wrong = config_mistake(a->effective, text);
    add_settings(m, a);
    add_way(m, a);
    add_training(m, a);
    add_law(m, a);
    manifest_texts(m, "mistakes", wrong, (const char *[]){text});
    manifest_number(m, "format", FORMAT);
}

// ---- inputs

void about_data_config(const struct run *r, struct data_config *out)
{
    *out = (struct data_config){
        .path = r->data,
        .vocab = r->vocab,
        .val_fraction = r->val_fraction,
        .val_unused = !r->eval,
        .batch = 1,
        .tokens = 1,
        .accum = 1,
        .world = 1,
        .seed = (uint64_t)r->seed,
        .order = (enum data_order)r->order,
        .same_draw = r->settings.mistake.kind == MISTAKE_SAME_SEED,
        .max_bytes = 4u << 20,
    };
}

static int add_file(struct manifest *m, const char *key, const char *path)
{
    struct file f;
    if (file_map(&f, key, path))
        return -1;
    manifest_hash(m, key, hash_bytes(f.at, f.bytes));
    file_unmap(&f);
    return 0;
}

int about_inputs(struct manifest *m, const struct run *r)
{
    const char *lab = r->settings.lab;
    // a run that goes on does not read it again
    bool init = strcmp(r->init, "random") && !access(r->init, F_OK);
    manifest_begin(m, "inputs");
    int rc = init ? add_file(m, "init_file", r->init) : 0;
    if (!rc && *lab)
        rc = add_file(m, "lab_file", lab);
    manifest_end(m);
    return rc;
}

int about_data(struct manifest *m, const struct run *r)
{
    struct data_config c;
    struct data_info info;
    struct data *d;
    about_data_config(r, &c);
    if (data_open(&d, &c))
        return -1;
    data_info(d, &info);
    manifest_begin(m, "data");
    manifest_hash(m, "hash_xxh3", info.hash);
    manifest_end(m);
    data_close(&d);
    return 0;
}
