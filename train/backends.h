// backends.h - the table of ways to agree, and of ways to meet.

#ifndef TRAIN_BACKENDS_H
#define TRAIN_BACKENDS_H

struct cluster_ops;
struct sync_job;
struct sync_ops;

// The backend called `name`; NULL after fail() that lists what there is.
const struct sync_ops *backend_find(const char *name);

// The one of that name that suits the job. All workers together; NULL after
// fail().
const struct sync_ops *backend_for(const char *name,
                                   const struct sync_job *job);

// The control plane: `name` as the key cluster= gives it; "auto" picks what
// the launcher and the backend `sync` need. NULL after fail().
const struct cluster_ops *meeting_find(const char *name, const char *sync,
                                       int world);

#endif
