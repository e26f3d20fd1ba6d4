// headers.h - a text that every machine with a compiler has: its C headers.

#pragma once

#include <stddef.h>

struct headers {
    char *text; // whole lines; the caller frees it with mem_free()
    size_t bytes, files;
};

// Reads the .h files below `root`, folder by folder in the order of their
// names, up to max_bytes bytes. 0, or -1 after fail() if there is none.
int headers_read(struct headers *h, const char *root, size_t max_bytes);
