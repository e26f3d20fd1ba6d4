// file.h - put a file in the place of another, whole or not at all; folders.

#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <sys/uio.h>

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

#endif
