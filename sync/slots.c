// slots.c - saves and loads the optimiser's state, range by range, if the
// workers update the parameters.

#include "sync/slots.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "device/device.h"
#include "optim/offload.h"
#include "sync/members.h"

#include <stdio.h>

enum { PIECE = 1 << 20 }; // most elements that are brought to the host at once

static size_t piece_at(const struct sync *s, size_t off)
{
    return s->job.n - off < PIECE ? s->job.n - off : PIECE;
}

int slots_visit(const struct sync *s, int i, int slot, bool fills,
                sync_visit *visit, void *ctx)
{
    float *piece = mem_alloc(piece_at(s, 0), sizeof *piece);
    int rc = piece ? 0 : -1;
    for (size_t off = 0, n; !rc && off < s->job.n; off += n) {
        float *own[OPTIM_MAX_SLOTS];
        n = piece_at(s, off);
        rc = offload_take(s->rule.file, s->rule.slots, off, fills, &n, own);
        if (!rc && !fills)
            device_copy(s->job.dev, piece, own[i], n * sizeof *piece);
        if (!rc)
            rc = visit(ctx, slot, off, piece, n);
        if (!rc && fills)
            device_copy(s->job.dev, own[i], piece, n * sizeof *piece);
    }
    mem_free(piece);
    return rc && !fills ? -1 : rc; // only what is loaded can be absent
}

int slots_count(const struct sync *s)
{
    return optim_slots(s->job.optim);
}

void slots_name(const struct sync *s, int slot, char name[SYNC_SLOT_NAME])
{
    snprintf(name, SYNC_SLOT_NAME, "%s", optim_slot_name(s->job.optim, slot));
}

static int save(struct sync *s, sync_visit *visit, void *ctx)
{
    int rc = 0;
    if (s->job.cluster->rank)
        return 0;
    for (int i = 0; !rc && i < optim_slots(s->job.optim); i++)
        rc = slots_visit(s, i, i, false, visit, ctx);
    return rc;
}

// Broadcast slot i, which is in a file.
static int broadcast_file(struct sync *s, int i)
{
    for (size_t off = 0, n; s->group && off < s->job.n; off += n) {
        float *own[OPTIM_MAX_SLOTS];
        n = s->job.n - off;
        if (offload_take(s->rule.file, NULL, off, true, &n, own) ||
            members_broadcast(s, own[i], n))
            return -1;
    }
    return 0;
}

// Broadcast v through a host vector if the carrier knows host memory only.
static int broadcast(struct sync *s, int slot, float *v)
{
    bool direct = device_is_host(s->job.dev) || s->ops->on_device ||
                  (s->carrier && s->carrier->on_device);
    if (direct)
        return members_copy(s, slot, v);
    size_t bytes = s->job.n * sizeof *v;
    float *host = mem_alloc(s->job.n, sizeof *host);
    if (!host)
        return -1;
    device_copy(s->job.dev, host, v, bytes);
    int rc = members_copy(s, slot, host);
    device_copy(s->job.dev, v, host, bytes);
    mem_free(host);
    return rc;
}

static int load(struct sync *s, sync_visit *visit, void *ctx)
{
    for (int i = 0; i < optim_slots(s->job.optim); i++) {
        if ((s->job.cluster->rank == 0 &&
             slots_visit(s, i, i, true, visit, ctx)) ||
            (s->rule.file ? broadcast_file(s, i)
                          : broadcast(s, i, s->rule.slots[i])))
            return -1;
    }
    return 0;
}

const struct sync_state_ops slots_of_rule = {
    .slots = slots_count,
    .slot_name = slots_name,
    .save = save,
    .load = load,
};
