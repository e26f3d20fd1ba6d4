// check_squeeze.c - refuses settings that squeeze= cannot have, and those that
// only it can have.

#include "config/config.h"

#include "base/base.h"
#include "config/backends.h"
#include "config/keys.h"

#include <string.h>

// With feedback=1, int8's errors must be shorter than what is rounded, or they
// would grow from step to step. The error of a block of 128 is at most
// sqrt(128) / levels times as long as the block (QSGD, lemma 3.1).
enum { LEAST_LEVELS = 12 };

static const char *name_of(const struct run *r)
{
    return key_find(&run_keys, "squeeze")->words[r->settings.squeeze];
}

static bool is_asked(const struct run *r, const char *key)
{
    return r->asked[key_find(&run_keys, key) - run_keys.rows];
}

// Refuses keys of compressors that this run does not use.
static int check_own_keys(const struct run *r)
{
    static const struct {
        const char *key, *of; // words of squeeze=; "": any but none
    } rows[] = {
        {"density", "topk"}, {"scope", "topk, sign"}, {"levels", "int8"},
        {"feedback", ""},    {"squeeze_after", ""},
    };
    const char *now = name_of(r);
    bool none = r->settings.squeeze == SQUEEZE_NONE;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *of = rows[i].of;
        if (!is_asked(r, rows[i].key) || strstr(of, now) || (!*of && !none))
            continue;
        return fail("%s= is a setting of squeeze=%s; try: %s", rows[i].key,
                    *of ? of : "topk, int8 and sign",
                    none ? "squeeze=topk, or leave it out" : "leave it out");
    }
    return 0;
}

// Refuses settings of how whole gradients travel.
static int check_travel(const struct run *r)
{
    static const char *const keys[] = {"fusion_mb", "algorithm", "ctas"};
    if (r->settings.wire != DTYPE_F32)
        return fail("wire=%s: squeeze=%s decides how gradients travel; try: "
                    "wire=fp32",
                    dtype_name(r->settings.wire), name_of(r));
    if (r->settings.own_norm)
        return fail("own_norm=1 is compared with the norm of the mean "
                    "gradient, which squeeze=%s does not compute; try: "
                    "own_norm=0",
                    name_of(r));
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (is_asked(r, keys[i]))
            return fail("%s= is for sums of whole gradients, and squeeze=%s "
                        "exchanges messages; try: leave it out",
                        keys[i], name_of(r));
    return 0;
}

// Refuses settings under which residuals would be lost, or grow.
static int check_feedback(const struct run *r)
{
    const struct sync_settings *set = &r->settings;
    if (!set->feedback)
        return 0;
    if (r->precision == PRECISION_FP16 && r->loss_scale == 0)
        return fail("feedback=1 keeps parts of gradients from step to step, "
                    "and the dynamic loss scale of precision=fp16 changes "
                    "their unit; try: loss_scale=1024, precision=bf16, or "
                    "feedback=0");
    if (set->squeeze == SQUEEZE_INT8 && set->levels < LEAST_LEVELS)
        return fail("levels=%d rounds so coarsely that with feedback=1 errors "
                    "would grow from step to step; try: levels=%d, or "
                    "feedback=0",
                    set->levels, LEAST_LEVELS);
    if (r->save_async)
        return fail("save_async=1 saves only a copy of worker 0's state, but "
                    "with feedback=1 every worker has a residual; try: "
                    "save_async=0, or feedback=0");
    return 0;
}

int config_check_squeeze(const struct run *r)
{
    const struct mesh *m = &r->mesh;
    int after = r->settings.squeeze_after;
    if (check_own_keys(r))
        return -1;
    if (r->settings.squeeze == SQUEEZE_NONE)
        return 0;
    if (mesh_size(m, MESH_PP) * mesh_size(m, MESH_TP) > 1)
        return fail("squeeze=%s: stages and slices hold some tensors in "
                    "common, and would not send the same of them; try: a mesh "
                    "of replicas only",
                    name_of(r));
    if (r->steps > 0 && after >= r->steps)
        return fail("squeeze_after=%d: of steps=%d none would be compressed; "
                    "try: squeeze_after=%d",
                    after, r->steps, r->steps / 10);
    return check_travel(r) || check_feedback(r) ? -1 : 0;
}
