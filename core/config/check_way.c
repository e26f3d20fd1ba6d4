// check_way.c - refuses what a way of agreeing cannot do because of who draws
// batches, and who updates.

#include "config/config.h"

#include "base/base.h"
#include "config/backends.h"
#include "config/keys.h"

#include <string.h>

bool config_takes_mistake(const struct run *r, const struct backend *b)
{
    bool owner = b->traffic == TRAFFIC_OWNER;
    switch (r->settings.mistake.kind) {
    case MISTAKE_SAME_SEED:
        return b->launch != LAUNCH_ALONE && !owner;
    case MISTAKE_TWO_UPDATES:
    case MISTAKE_LOCAL_CLIP:
        return !b->servers && !b->shards && !b->apart && !owner &&
               b->traffic != TRAFFIC_OWN;
    default:
        return true;
    }
}

static int check_mistake(const struct run *r, const struct backend *b)
{
    char text[CONFIG_PATH];
    if (config_takes_mistake(r, b))
        return 0;
    config_mistake(r, text);
    if (r->settings.mistake.kind != MISTAKE_SAME_SEED)
        return fail("%s needs workers that each update with the sum of all "
                    "gradients in every step; try: sync=ring",
                    text);
    if (b->launch == LAUNCH_ALONE)
        return fail("%s is a mistake of several workers; try: sync=ring", text);
    return fail("%s: with sync=%s worker 0 draws the batches of all; try: "
                "sync=ring",
                text, b->name);
}

// Refuses update rules that need the norms of whole tensors, if the worker or
// server that updates may have parts of them, or updates by another function.
static int check_layers(const struct run *r, const struct backend *b)
{
    const char *rule = key_find(&run_keys, "optimizer")->words[r->optimizer];
    if (strcmp(rule, "lars") && strcmp(rule, "lamb"))
        return 0;
    if (b->servers || b->shards || b->traffic == TRAFFIC_OWNER)
        return fail("optimizer=%s needs the norms of whole tensors, which "
                    "sync=%s does not compute; try: sync=ring, or "
                    "optimizer=adamw",
                    rule, b->name);
    if (mesh_size(&r->mesh, MESH_PP) * mesh_size(&r->mesh, MESH_TP) > 1)
        return fail("optimizer=%s needs whole tensors and models; try: a mesh "
                    "without stages and slices, or optimizer=adamw",
                    rule);
    if (strcmp(r->device, "cpu"))
        return fail(
            "optimizer=%s has no kernel for device=%s; try: device=cpu, "
            "or optimizer=adamw",
            rule, r->device);
    return 0;
}

// Refuses a file for a state that is not updated piece by piece in host memory.
static int check_offload(const struct run *r, const struct backend *b)
{
    const char *rule = key_find(&run_keys, "optimizer")->words[r->optimizer];
    if (!r->settings.offload)
        return 0;
    if (!strcmp(rule, "lars") || !strcmp(rule, "lamb"))
        return fail("offload=disk: optimizer=%s needs the norms of whole "
                    "tensors, and the file gives parts of them; try: "
                    "optimizer=adamw",
                    rule);
    if (!strcmp(rule, "sgd") && (r->momentum <= 0 || config_moves_momentum(r)))
        return fail(
            "offload=disk: optimizer=sgd without momentum has no state; "
            "try: leave it out");
    if (strcmp(r->device, "cpu") && !b->shards)
        return fail(
            "offload=disk: with device=%s only sync=zero updates in the "
            "host's memory; try: sync=zero",
            r->device);
    if (!*r->out)
        return fail(
            "offload=disk: the file needs a run's folder; try: out=DIR");
    return 0;
}

int config_check_way(const struct run *r, const struct backend *b)
{
    return check_mistake(r, b) || check_layers(r, b) || check_offload(r, b) ? -1
                                                                            : 0;
}
