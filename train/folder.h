// folder.h - folders and small files that survive a crash.

#pragma once

#include <stdbool.h>

// Make an empty folder, removing what an earlier attempt left at that path.
// Returns 0, or -1 after fail().
int folder_make(const char *path);

// Rename the finished folder `next` to `path`, replacing an older folder of
// that name in one atomic step. The change is on disk when this returns.
// Returns 0, or -1 after fail().
int folder_replace(const char *next, const char *path);

// Ends a save: renames the finished folder `next` to out/name, as
// folder_replace() does, lets out/latest name the newest checkpoint, and then
// removes old checkpoints, as folder_prune() does. Returns 0, or -1 after
// fail().
int folder_finish(const char *next, const char *out, const char *name,
                  int keep);

// Replace the content of the file folder/name by `text` with a temporary file,
// fsync and rename. Returns 0, or -1 after fail().
int folder_write(const char *folder, const char *name, const char *text);

// Returns the text of folder/name (at most 16 MiB), or NULL after fail(). The
// caller frees it with mem_free().
char *folder_read(const char *folder, const char *name);

// Whether there is a file of this name in `folder`.
bool folder_has(const char *folder, const char *name);

// Locks the folder of out=: only one job at a time may write there. Returns
// what folder_unlock() takes, or -1 after fail().
int folder_lock(const char *out);
void folder_unlock(int lock, const char *out);

// Returns the largest N < below for which out/checkpoint-N exists, or -1.
int folder_newest(const char *out, int below);

// Returns the N of checkpoint-N, which the file out/latest names, or -1.
int folder_latest(const char *out);

// Makes checkpoint-STEP the newest one of a run that goes on after it: renames
// each later checkpoint to checkpoint-N.aside-1 (or -2 ..), logs this, and
// corrects the file `latest`. step -1: no checkpoint in `out` is in the past of
// the run. Returns 0, or -1 after fail().
int folder_rewind(const char *out, int step);

// Keeps folder_prune() from removing the checkpoint `path` until the descriptor
// that is returned is closed. -1: there is no such folder.
int folder_hold(const char *path);

// Waits at most timeout_s until no other process saves in `out`. Returns a
// descriptor, whose closing ends this process's turn, or -1 after fail().
int folder_turn(const char *out, double timeout_s);

// Remove all folders out/checkpoint-N but the newest `keep` (0: keep all) and
// those that are held, and what unfinished saves left. Returns 0, or -1 after
// fail().
int folder_prune(const char *out, int keep);
