// crash.h - what a grader does with the disk of disk.h: kill in any call, lose
// power, fill it.

#ifndef LABS_CRASH_H
#define LABS_CRASH_H

#include "labs/disk.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>

// An empty disk. NULL where there is no memory. Free takes NULL.
struct disk *crash_new(void);
void crash_free(struct disk **d);

// The process is killed in its call number `call` from now on, from 1: nothing
// of it is done, or, where `half`, half of the bytes of a write. Control goes
// to *leave.
void crash_at(struct disk *d, long call, bool half, jmp_buf *leave);

// From now on so many bytes can still be written; SIZE_MAX: any number.
void crash_room(struct disk *d, size_t bytes);

// What was done and is not synced: so many writes and changes of names.
int crash_pending(const struct disk *d);

// The disk that one finds when power is back: of what was pending, number i is
// lost where is_lost(ctx, i), and of the last write that is not, `torn` loses
// half. With NULL nothing is lost, as when only the process was killed.
struct disk *crash_after(const struct disk *d,
                         bool (*is_lost)(const void *ctx, int i),
                         const void *ctx, bool torn);

// Bytes of all files that have a name.
size_t crash_stored(const struct disk *d);

#endif
