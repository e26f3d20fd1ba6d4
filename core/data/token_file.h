// token_file.h - maps a whole file: so a shard of 20 GB takes no memory.
//
// If the file becomes shorter while a run reads it, SIGBUS ends the run.

#pragma once

#include <stdbool.h>
#include <stddef.h>

struct file {
    const unsigned char *at;
    size_t bytes;
};

// Maps the regular file `path`; file_unmap() unmaps it. 0, or -1 after fail()
// if it is missing, no regular file, unreadable or empty. `key` is the setting
// that gave the path, for the error.
int file_map(struct file *f, const char *key, const char *path);
void file_unmap(struct file *f);

// Whether `path` is a folder.
bool file_is_folder(const char *path);
