// ways.h - finds the strategy and the carriers of a backend, and the control
// plane.

#pragma once

#include <stdbool.h>

struct backend;
struct cluster_ops;
struct group_ops;
struct sync_ops;
struct sync_settings;

// What a backend is made from: the strategy, and the carriers that it may use,
// the best first, then NULL.
struct way {
    const struct sync_ops *strategy;
    const struct group_ops *const *carriers;
};

// Finds the way of a backend, which is a row of the table of backends.
const struct way *way_find(const struct backend *b);

// The strategy that a run has: that of the way, or with squeeze= the one that
// takes its place.
const struct sync_ops *strategy_find(const struct way *w,
                                     const struct sync_settings *s);

// The ring between GPUs, over NCCL; NULL in a build without NCCL.
const struct group_ops *carrier_between_gpus(void);

// Returns the control plane that the launcher and the backend need. alone:
// nobody has said where to meet others, so they are there only if mpirun
// started this worker.
const struct cluster_ops *control_plane_find(const struct backend *b,
                                             bool alone);
