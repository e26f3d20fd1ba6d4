// crash.h - a grader's view of the disk of disk.h: it can kill the process in
// any call, lose power, and limit the space.

#ifndef LABS_CRASH_H
#define LABS_CRASH_H

#include "labs/disk.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

// Makes an empty disk. Returns NULL if there is no memory. The caller frees it
// with crash_free(), which takes a pointer to NULL, too, and sets *d to NULL.
struct disk *crash_new(void);
void crash_free(struct disk **d);

// Kills the process in its call number `call` from now on, counted from 1. The
// call changes nothing. But with `half`, a write writes half of its bytes.
// Control jumps to *leave. With call 0 there is no kill.
void crash_at(struct disk *d, long call, bool half, jmp_buf *leave);

// Lets at most `bytes` more bytes be written; SIZE_MAX: any number.
void crash_set_space(struct disk *d, size_t bytes);

// Lets sync number `number` from now on fail, counted from 1: it syncs nothing
// and returns -1. With 0 no sync fails.
void crash_fail_sync(struct disk *d, int number);

// Syncs the names that begin with `prefix`: a disk of several folders may name
// its files "folder/file".
void crash_sync_names(struct disk *d, const char *prefix);

// Exchanges the files of two names in one step, as RENAME_EXCHANGE of Linux
// does. Returns 0, or -1 if one of them does not exist.
int crash_exchange(struct disk *d, const char *a, const char *b);

// Returns the number of pending changes: writes and changes of names that are
// done but not synced.
int crash_pending(const struct disk *d);

// Returns the disk after a loss of power, or NULL if there is no memory; the
// caller frees it. Pending change number i is lost if is_lost(ctx, i). If
// is_lost is NULL, nothing is lost, as when only the process was killed. With
// `torn`, the last pending write that is not lost loses the second half of its
// bytes.
struct disk *crash_after(const struct disk *d,
                         bool (*is_lost)(const void *ctx, int i),
                         const void *ctx, bool torn);

// Puts a line of text into the disk's list of calls: what follows belongs to
// it.
void crash_mark(struct disk *d, const char *text);

// Writes the list of the calls that changed or synced the disk, with a picture
// of what the loss of power left of each, and the files of `after`, the disk
// that crash_after() made with the same arguments.
void crash_show(const struct disk *d, const struct disk *after,
                bool (*is_lost)(const void *ctx, int i), const void *ctx,
                bool torn, FILE *f);

// Returns the number of bytes of all files that have a name.
size_t crash_stored(const struct disk *d);

#endif
