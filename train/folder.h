// folder.h - folders and small files that survive a crash.

#ifndef TRAIN_FOLDER_H
#define TRAIN_FOLDER_H

#include <stddef.h>

// Make an empty folder, removing what an earlier attempt left at that path.
// Returns 0, or -1 after fail().
int folder_make(const char *path);

// Rename the finished folder `next` to `path`, replacing an older folder of
// that name in one atomic step. The change is on disk when this returns.
// Returns 0, or -1 after fail().
int folder_replace(const char *next, const char *path);

// Replace the content of the file folder/name by `text` with a temporary file,
// fsync and rename. Returns 0, or -1 after fail().
int folder_write(const char *folder, const char *name, const char *text);

// Returns the text of folder/name (at most 16 MiB), or NULL after fail(). The
// caller frees it with mem_free().
char *folder_read(const char *folder, const char *name);

// Returns the largest N < below for which out/checkpoint-N exists, or -1.
int folder_newest(const char *out, int below);

// Remove all folders out/checkpoint-N but the newest `keep` (0: keep all), and
// what unfinished saves left. Returns 0, or -1 after fail().
int folder_prune(const char *out, int keep);

#endif
