// ways.h - what trains a row of the table of backends, and ways to meet.

#ifndef TRAIN_WAYS_H
#define TRAIN_WAYS_H

struct backend;
struct cluster_ops;
struct group_ops;
struct sync_ops;

// A way of agreeing: the strategy, and the carriers that it may use, the best
// first, NULL-terminated.
struct way {
    const struct sync_ops *strategy;
    const struct group_ops *const *carriers;
};

// That of a row of the table.
const struct way *way_find(const struct backend *b);

// The control plane: `name` as the key cluster= gives it; "auto" picks what
// the launcher and the backend need. NULL after fail().
const struct cluster_ops *meeting_find(const char *name,
                                       const struct backend *b, int world);

#endif
