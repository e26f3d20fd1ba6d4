// disk.h - a disk with one folder, as a lab's file sees it: what POSIX
// promises, and not more.
//
// What was written is seen at once by whoever reads. But it survives a loss of
// power only once it is synced: the bytes of a file by disk_sync(), names by
// disk_sync_folder(). Of what is not synced any part may be lost, in any order.
// A rename alone is never half done.
//
// A call returns -1 where it failed.

#ifndef LABS_DISK_H
#define LABS_DISK_H

#include <stddef.h>

enum { DISK_NAME = 64 }; // a name has at most DISK_NAME - 1 characters

struct disk;

// A new, empty file of this name, in place of one that has it; to write. Or one
// that is there, to read from its beginning. Returns a descriptor.
int disk_create(struct disk *d, const char *name);
int disk_open(struct disk *d, const char *name);

// How many bytes were written at the end of the file, which may be fewer: none,
// where the disk is full. How many were read, which are fewer at the end of the
// file.
long disk_write(struct disk *d, int file, const void *p, size_t bytes);
long disk_read(struct disk *d, int file, void *p, size_t bytes);

int disk_sync(struct disk *d, int file); // its bytes, not its name
int disk_close(struct disk *d, int file);

// Give a file another name, in place of one that has it.
int disk_rename(struct disk *d, const char *from, const char *to);
int disk_remove(struct disk *d, const char *name);
int disk_sync_folder(struct disk *d); // all names

// The i-th name, from 0, in no order; -1 where there are no more.
int disk_list(struct disk *d, int i, char name[DISK_NAME]);

#endif
