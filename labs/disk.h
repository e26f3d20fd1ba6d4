// disk.h - a disk with one folder, for a lab's file. It promises what POSIX
// promises, and no more.
//
// Every reader sees a change at once. But a change survives a loss of power
// only once it is synced: the bytes of a file by disk_sync(), names by
// disk_sync_folder(). A loss of power may undo any of the changes that are not
// synced: it may undo an older change and leave a newer one. Only a rename is
// never half done.
//
// Every call returns -1 if it failed. At most 16 files are open at a time, and
// at most 64 have a name.

#ifndef LABS_DISK_H
#define LABS_DISK_H

#include <stddef.h>

enum { DISK_NAME = 64 }; // a name has at most DISK_NAME - 1 characters

struct disk;

// disk_create() makes an empty file to write; it replaces a file that has this
// name. disk_open() opens a file that exists, to read from its beginning. Both
// return a descriptor.
int disk_create(struct disk *d, const char *name);
int disk_open(struct disk *d, const char *name);

// disk_write() appends to the file. It returns the number of bytes written,
// which is less than `bytes` if the disk becomes full, or -1 if it is full.
// disk_read() returns the number of bytes read, which is less than `bytes` at
// the end of the file.
long disk_write(struct disk *d, int file, const void *p, size_t bytes);
long disk_read(struct disk *d, int file, void *p, size_t bytes);

// disk_sync() syncs the file's bytes, but not its name. Both return 0, or -1 if
// the disk has an error.
int disk_sync(struct disk *d, int file);
int disk_close(struct disk *d, int file);

// disk_rename() gives a file another name; it replaces a file that has that
// name. disk_sync_folder() syncs all names. All three return 0, or -1 if there
// is no such file or the disk has an error.
int disk_rename(struct disk *d, const char *from, const char *to);
int disk_remove(struct disk *d, const char *name);
int disk_sync_folder(struct disk *d);

// Copies the i-th name (from 0, in no order) to `name`. Returns 0, or -1 if
// there are no more names.
int disk_list(struct disk *d, int i, char name[DISK_NAME]);

#endif
