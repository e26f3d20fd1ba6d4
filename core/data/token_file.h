// token_file.h - a whole file as bytes, mapped: a shard of 20 GB costs no
// memory.
//
// Who shortens a file while a run reads it ends the run with SIGBUS.

#ifndef DATA_TOKEN_FILE_H
#define DATA_TOKEN_FILE_H

#include <stdbool.h>
#include <stddef.h>

struct file {
    const unsigned char *at;
    size_t bytes;
};

// Map the regular file `path`. 0, or -1 after fail() when it is missing, no
// regular file, unreadable or empty; `key` is the setting that named it.
int file_map(struct file *f, const char *key, const char *path);
void file_unmap(struct file *f);

bool file_is_folder(const char *path);

#endif
