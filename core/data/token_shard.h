// token_shard.h - tokens in files that others wrote: nanoGPT's and llm.c's
// .bin.
//
//     nanoGPT   uint16 token[n]
//     llm.c     int32 header[256]: 20240520, version 1, n; uint16 token[n]
//
// A file is a shard when it begins with llm.c's number, or else when its name
// ends in .bin; anything else is text.

#ifndef DATA_TOKEN_SHARD_H
#define DATA_TOKEN_SHARD_H

#include "data/token_file.h"
#include "data/tokens.h"

#include <stdbool.h>

bool shard_is(const struct file *f, const char *path);

// The tokens in `f`, which stay there. 0, or -1 after fail(): a wrong magic,
// version or length, or no tokens.
int shard_read(const struct file *f, const char *path, struct tokens *out);

#endif
