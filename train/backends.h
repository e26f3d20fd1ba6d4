// backends.h - the table of ways to agree, and of ways to meet.

#ifndef TRAIN_BACKENDS_H
#define TRAIN_BACKENDS_H

struct cluster_ops;
struct group_ops;
struct sync_ops;

// A way of agreeing: the strategy, and the carriers that it may use, the best
// first, NULL-terminated; NULL where it needs none.
struct way {
    const char *name;
    const struct sync_ops *strategy;
    const struct group_ops *const *carriers;
};

// The way called `name`; NULL after fail().
const struct way *way_find(const char *name);

// The control plane: `name` as the key cluster= gives it; "auto" picks what
// the launcher and the backend `sync` need. NULL after fail().
const struct cluster_ops *meeting_find(const char *name, const char *sync,
                                       int world);

#endif
