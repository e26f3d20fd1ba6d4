// file.h - reads and writes files; replaces a file by another, whole or not at
// all; makes and removes folders; locks.
//
// A folder may come from a stranger. So no function waits for a FIFO or a
// device, or writes or removes what a symbolic link in the folder leads to.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/uio.h>

// Opens a regular file for reading. Refuses a FIFO or a device, which could
// block or never end. NULL after fail().
FILE *file_open(const char *path);

// The same for a file whose text is copied: also refuses a symbolic link.
FILE *file_open_here(const char *path);

// Makes an empty file, or empties the one that is there, for writing and
// reading; file_append() keeps its content and writes at its end. Both refuse a
// symbolic link and what is not a regular file. NULL after fail().
FILE *file_create(const char *path);
FILE *file_append(const char *path);

// Writes what the stream still holds. 0, or -1 with errno if that failed, or an
// earlier write did: fflush() and fclose() alone do not say so. Then a line end
// may stand behind what was written.
int file_flush(FILE *f);

// Closes a file that was written. `path` is its name in errors. 0, or -1 after
// fail() if not all of it could be written.
int file_close(FILE *f, const char *path);

// Reads the next line as fgets() does. Returns false at the end, and at a zero
// byte: what follows is not text, and in a sparse file it may be very long.
bool file_line(char *line, int size, FILE *f);

// Reads a file of at most `most` bytes as text. The caller frees it with
// mem_free(). NULL after fail().
char *file_read(const char *path, size_t most);

// Reads exactly `bytes` bytes of an open file, from `off` on. `path` is its
// name in errors. 0, or -1 after fail().
int file_read_at(int fd, const char *path, void *out, size_t bytes, size_t off);

// Writes the n pieces, one after the other, to `path`: into `path`.tmp, then
// fsync, rename, and fsync of the folder. So `path` is always the old file or
// the new one, even if the process is killed. The next call removes a .tmp
// that a killed process left behind. 0, or -1 after fail(); then .tmp is
// removed.
int file_replace(const char *path, const struct iovec *pieces, int n);

// The same with one text. 0, or -1 after fail().
int file_replace_text(const char *path, const char *text);

// A file that becomes `path` when it is whole, without fsync. file_next() makes
// `path`.next. NULL after fail(), also if `path` is there and is, or leads to,
// no regular file. file_finish() closes this file and renames it to `path`, or
// removes it if rc is not 0 or that fails. 0, or -1 after fail().
FILE *file_next(const char *path);
int file_finish(FILE *f, const char *path, int rc);

// Whether file_next() could make `path`.next, which is removed again: 0, or -1
// after fail(). For what is written only after long work.
int file_can_replace(const char *path);

// What an error that says why a file or folder cannot be made ends with:
// "; try: ..", or "".
const char *file_remedy(int error);

// Makes the folder `path` and its parents. Returns 1 if it was made, 0 if it
// was there, -1 after fail().
int file_make_folder(const char *path);

// Removes the folder `path` and the files in it, or a symbolic link of that
// name. 0, also if there is no such folder. -1 after fail(), for example if
// `path` holds another folder.
int file_remove_folder(const char *path);

// Makes the file `path` and locks it. Returns a descriptor that holds the lock
// until it is closed, or the process ends in any way. FILE_LOCKED if another
// process has the lock; -1 after fail().
enum { FILE_LOCKED = -2 };
int file_lock(const char *path);

// Removes the file and releases the lock. fd is file_lock()'s.
void file_unlock(int fd, const char *path);
