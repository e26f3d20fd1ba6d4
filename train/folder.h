// folder.h - folders and small files that survive a crash.

#ifndef TRAIN_FOLDER_H
#define TRAIN_FOLDER_H

#include <stddef.h>

// Make an empty folder, removing what an earlier attempt left under its name.
int folder_make(const char *path);

// Give the finished folder `next` the name `path`, replacing what has it, in
// one step that is on disk when this returns.
int folder_replace(const char *next, const char *path);

// Replace the file folder/name by `text`, by temporary file, fsync and rename.
int folder_write(const char *folder, const char *name, const char *text);

// The text of folder/name (at most 16 MiB); caller frees with mem_free(). NULL
// after fail().
char *folder_read(const char *folder, const char *name);

// The largest N < below of out/checkpoint-N; -1 if there is none.
int folder_newest(const char *out, int below);

// Remove all but the newest `keep` of out/checkpoint-N (0: keep all), and what
// unfinished saves left.
int folder_prune(const char *out, int keep);

#endif
