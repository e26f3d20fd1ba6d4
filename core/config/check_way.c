// check_way.c - refuses what a way of agreeing cannot do because of who draws
// batches, and who updates.

#include "config/config.h"

#include "base/base.h"
#include "config/backends.h"
#include "config/keys.h"

#include <string.h>

// Refuses mistake_same_seed=1 if no worker draws batches for itself alone.
static int check_same_seed(const struct run *r, const struct backend *b)
{
    if (!r->mistake_same_seed)
        return 0;
    if (b->launch == LAUNCH_ALONE)
        return fail("mistake_same_seed=1 is a mistake of several workers; try: "
                    "sync=ring");
    if (b->traffic == TRAFFIC_OWNER)
        return fail("mistake_same_seed=1: with sync=%s worker 0 draws the "
                    "batches of all; try: sync=ring",
                    b->name);
    return 0;
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
    return check_same_seed(r, b) || check_layers(r, b) || check_offload(r, b)
               ? -1
               : 0;
}
