// outer_world.h - shared by the tests of sync=outer: a fixture for each
// carrier, and steps with a given learning rate and clip.

#pragma once

#include "horovod_ring/carriers.h"
#include "outer/outer.h"
#include "tests/queue_device.h"
#include "tests/sync_cases.h"

static const struct group_ops *const tcp[] = {&ring_tcp, NULL};
static const struct group_ops *const shm[] = {&ring_shm, NULL};

// Small slices, so that a small vector has many.
static const struct fixture outer_tcp = {
    .sync = "outer",
    .ops = &sync_outer,
    .carriers = tcp,
    .opts = "slice_kb=1",
};

static const struct fixture outer_shm = {
    .sync = "outer",
    .ops = &sync_outer,
    .carriers = shm,
    .opts = "",
    .shared = true,
};

// With staging, as on a GPU.
static const struct fixture staged = {
    .sync = "outer",
    .ops = &sync_outer,
    .carriers = tcp,
    .opts = "slice_kb=1",
    .device = queue_device_open,
};

enum { EVERY = 3 };

struct how {
    float lr, clip;
    bool last;
};

static inline int take_step(struct worker *w, int step, const struct how *how,
                            struct sync_out *out)
{
    const struct sync_in in = {.step = step,
                               .lr = how->lr,
                               .grad_scale = 1.0f / (float)w->world,
                               .clip = how->clip,
                               .last = how->last};
    for (int b = 0; b < w->job.nbuckets; b++)
        if (sync_ready(w->sync, b))
            return -1;
    return sync_step(w->sync, &in, out);
}

static const struct fixture *const carried[] = {&outer_tcp, &outer_shm,
                                                &staged};
enum { CARRIED = sizeof carried / sizeof *carried };
