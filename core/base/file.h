// file.h - read files; put one in the place of another, whole or not at all;
// folders.

#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stddef.h>
#include <stdio.h>
#include <sys/uio.h>

// Open a regular file to be read; what would block or never end (a FIFO, a
// device) is refused. NULL after fail().
FILE *file_open(const char *path);

// The file as text, of at most `most` bytes; caller frees with mem_free(). NULL
// after fail().
char *file_read(const char *path, size_t most);

// Exactly `bytes` from `off` on of an open file, which errors call `path`. 0,
// or -1 after fail().
int file_read_at(int fd, const char *path, void *out, size_t bytes, size_t off);

// Write the n pieces one behind the other to `path`: into `path`.tmp, fsync,
// rename, fsync of the folder. Whoever opens `path`, also after a kill at any
// moment, finds the old file or the new one. A .tmp that a kill left behind is
// overwritten by the next call. 0, or -1 after fail(), then .tmp is gone.
int file_replace(const char *path, const struct iovec *pieces, int n);

// The same with one text.
int file_replace_text(const char *path, const char *text);

// Make the folder `path` and those above it. Returns 1 if it was made, 0 if it
// was there, -1 after fail().
int file_make_folder(const char *path);

// Remove the folder `path` and the files in it; one that is not there is no
// error, a folder in it is. 0, or -1 after fail().
int file_remove_folder(const char *path);

// Take the lock that is the file `path`, which is made. A descriptor that holds
// it until it is closed, however the process ends; FILE_LOCKED if another
// process has it; -1 after fail().
enum { FILE_LOCKED = -2 };
int file_lock(const char *path);

// Give the lock back, and remove its file.
void file_unlock(int fd, const char *path);

#endif
