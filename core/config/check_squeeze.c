// check_squeeze.c - refuses settings that squeeze= cannot have, and those that
// only it can have.

#include "config/config.h"

#include "base/base.h"
#include "config/backends.h"

#include <string.h>

// With feedback=1, int8's errors must be shorter than what is rounded, or they
// would grow from step to step. The error of a block of 128 is at most
// sqrt(128) / levels times as long as the block (QSGD, lemma 3.1).
enum { LEAST_LEVELS = 12 };

static const char *name_of(const struct run *r)
{
    return config_word(r, "squeeze");
}

static const struct {
    const char *key, *of; // words of squeeze=
} own_keys[] = {
    {"density", "topk, demo"},
    {"scope", "topk, sign"},
    {"levels", "int8"},
    {"squeeze_rank", "power"},
    {"momentum_correction", "topk"},
    {"feedback", "topk, int8, sign, power"},
    {"squeeze_after", "topk, int8, sign, power"},
    {"freeze", "sign"},
};
enum { OWN_KEYS = sizeof own_keys / sizeof *own_keys };

bool config_squeeze_takes(const struct run *r, const char *key)
{
    for (int i = 0; i < OWN_KEYS; i++)
        if (!strcmp(own_keys[i].key, key))
            return strstr(own_keys[i].of, name_of(r)) != NULL;
    return true;
}

// Refuses keys of compressors that this run does not use.
static int check_own_keys(const struct run *r)
{
    bool none = r->settings.squeeze == SQUEEZE_NONE;
    char said[CONFIG_SAID];
    for (int i = 0; i < OWN_KEYS; i++) {
        const char *key = own_keys[i].key, *of = own_keys[i].of;
        if (!config_asked(r, key) || config_squeeze_takes(r, key))
            continue;
        return fail("%s is a setting of squeeze=%s; try: %s%.*s%s",
                    config_said(r, key, said), of, none ? "squeeze=" : "",
                    none ? (int)strcspn(of, ",") : 0, of,
                    none ? ", or leave it out" : "leave it out");
    }
    return 0;
}

const char *const config_sum_keys[] = {"algorithm", "ctas", NULL};

// Refuses settings of how whole gradients travel.
static int check_travel(const struct run *r)
{
    char said[CONFIG_SAID];
    if (r->settings.wire != DTYPE_F32)
        return fail("wire=%s: squeeze=%s decides how gradients travel; try: "
                    "wire=fp32",
                    dtype_name(r->settings.wire), name_of(r));
    if (r->settings.own_norm)
        return fail("own_norm=1 is compared with the norm of the mean "
                    "gradient, which squeeze=%s does not compute; try: "
                    "own_norm=0",
                    name_of(r));
    for (int i = 0; config_sum_keys[i]; i++)
        if (config_asked(r, config_sum_keys[i]))
            return fail("%s is for sums of whole gradients, and squeeze=%s "
                        "exchanges messages; try: leave it out",
                        config_said(r, config_sum_keys[i], said), name_of(r));
    return 0;
}

// Refuses settings under which residuals would be lost, or grow.
static int check_feedback(const struct run *r)
{
    const struct sync_settings *set = &r->settings;
    bool demo = set->squeeze == SQUEEZE_DEMO;
    const char *what = demo ? "squeeze=demo" : "feedback=1";
    const char *rest = demo ? "" : ", or feedback=0";
    if (!set->feedback)
        return 0;
    if (r->precision == PRECISION_FP16 && r->loss_scale == 0)
        return fail("%s keeps parts of gradients from step to step, and the "
                    "dynamic loss scale of precision=fp16 changes their unit; "
                    "try: loss_scale=1024, or precision=bf16%s",
                    what, rest);
    if (set->squeeze == SQUEEZE_INT8 && set->levels < LEAST_LEVELS)
        return fail("levels=%d rounds so coarsely that with feedback=1 errors "
                    "would grow from step to step; try: levels=%d, or "
                    "feedback=0",
                    set->levels, LEAST_LEVELS);
    if (r->save_async)
        return fail("save_async=1 saves only a copy of worker 0's state, but "
                    "with %s every worker has its own; try: save_async=0%s",
                    what, rest);
    return 0;
}

// Each worker has the momentum of the optimiser, and clears it where it sends.
static int check_momentum(const struct run *r)
{
    if (!r->settings.momentum_correction)
        return 0;
    const char *rule = config_word(r, "optimizer");
    if (strcmp(rule, "sgd") || r->momentum <= 0)
        return fail("momentum_correction=1 moves the momentum of SGD to the "
                    "workers; try: optimizer=sgd with momentum=0.9");
    if (!r->settings.feedback)
        return fail("momentum_correction=1 adds velocities to what a worker "
                    "has not sent yet; try: feedback=1");
    return 0;
}

bool config_moves_momentum(const struct run *r)
{
    return r->settings.momentum_correction ||
           r->settings.squeeze == SQUEEZE_DEMO;
}

// DeMo is a rule of its own.
static int check_demo(const struct run *r)
{
    const char *rule = config_word(r, "optimizer");
    if (r->settings.squeeze != SQUEEZE_DEMO)
        return 0;
    if (strcmp(rule, "sgd"))
        return fail("squeeze=demo is a rule of its own: SGD by signs, with a "
                    "momentum of each worker; try: optimizer=sgd with "
                    "momentum=0.999");
    if (config_asked(r, "clip") && r->clip > 0)
        return fail("clip=%g: squeeze=demo updates by signs, which have no "
                    "length to clip; try: leave it out",
                    r->clip);
    return 0;
}

// 1-bit Adam begins as AdamW, and then compresses its first moment.
static int check_freeze(const struct run *r)
{
    const char *rule = config_word(r, "optimizer");
    const struct sync_settings *set = &r->settings;
    if (!set->freeze)
        return 0;
    if (strcmp(rule, "adamw"))
        return fail("freeze=%d: the moments are those of AdamW; try: "
                    "optimizer=adamw",
                    set->freeze);
    if (set->squeeze_after)
        return fail("squeeze_after=%d: with freeze=%d gradients travel whole "
                    "in the first %d steps; try: leave it out",
                    set->squeeze_after, set->freeze, set->freeze);
    if (r->precision == PRECISION_FP16 && r->loss_scale == 0)
        return fail("freeze=%d adds a moment to gradients, and the dynamic "
                    "loss scale of precision=fp16 changes their unit; try: "
                    "loss_scale=1024, or precision=bf16",
                    set->freeze);
    if (set->offload || strcmp(r->device, "cpu"))
        return fail("freeze=%d: every worker reads the moments in its memory "
                    "while backward runs; try: %s",
                    set->freeze, set->offload ? "offload=none" : "device=cpu");
    return 0;
}

// Refuses what servers do not do with messages.
static int check_servers(const struct run *r, const struct backend *b)
{
    const struct sync_settings *set = &r->settings;
    if (!b->servers)
        return 0;
    if (set->squeeze == SQUEEZE_DEMO)
        return fail("squeeze=demo needs the mean of those messages that have a "
                    "coefficient, and a server adds; try: sync=ring");
    if (set->squeeze == SQUEEZE_POWER)
        return fail("squeeze=power needs two sums over all workers, one after "
                    "the other, and a server adds once; try: sync=ring");
    if (set->update == UPDATER_SERVER ||
        set->consistency.kind != CONSISTENCY_BSP || set->backup || set->elastic)
        return fail("squeeze=%s: servers send sums of compressed gradients, "
                    "and workers update; try: update=worker, with "
                    "consistency=bsp, backup=0 and elastic=0",
                    name_of(r));
    return 0;
}

// Refuses what has no sum that each worker could have a part of.
static int check_shards(const struct run *r, const struct backend *b)
{
    const struct sync_settings *set = &r->settings;
    if (!b->shards)
        return 0;
    if (set->squeeze == SQUEEZE_DEMO)
        return fail("squeeze=demo has no state of the optimiser that workers "
                    "could divide; try: sync=ring");
    if (set->squeeze == SQUEEZE_POWER)
        return fail("squeeze=power gives every worker the whole sum, and a "
                    "worker of sync=%s updates with a part of it; try: "
                    "sync=ring",
                    r->sync);
    return set->shard >= SHARD_GRADS && set->feedback
               ? fail("shard=%d: feedback=1 keeps residuals as long as the "
                      "gradients on each worker, which is more than shard=%d "
                      "saves; try: feedback=0, or shard=1",
                      set->shard, set->shard)
               : 0;
}

// Refuses what no lab's file does.
static int check_lab(const struct run *r, const struct backend *b)
{
    if (b->traffic != TRAFFIC_OWN || r->settings.squeeze == SQUEEZE_POWER)
        return 0;
    return fail("squeeze=%s: of the labs that train, only lab 14 compresses, "
                "by low rank; try: squeeze=power",
                name_of(r));
}

int config_check_squeeze(const struct run *r)
{
    const struct backend *b = backend_find(r->sync);
    int freeze = r->settings.freeze;
    int after = freeze ? freeze : r->settings.squeeze_after;
    const char *key = freeze ? "freeze" : "squeeze_after";
    if (check_own_keys(r))
        return -1;
    if (r->settings.squeeze == SQUEEZE_NONE)
        return 0;
    if (mesh_parts(&r->mesh) > 1)
        return fail("squeeze=%s: workers of a mesh with pp, tp or cp would not "
                    "send the same of what they have in common; try: a mesh "
                    "of replicas only",
                    name_of(r));
    if (r->steps > 0 && after >= r->steps)
        return fail("%s=%d: of steps=%d none would be compressed; try: %s=%d",
                    key, after, r->steps, key,
                    freeze ? (r->steps + 4) / 5 : r->steps / 10);
    return check_lab(r, b) || check_servers(r, b) || check_shards(r, b) ||
                   check_demo(r) || check_momentum(r) || check_freeze(r) ||
                   check_travel(r) || check_feedback(r)
               ? -1
               : 0;
}
