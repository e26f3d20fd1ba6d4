// token_shard.h - token files of other programs: the .bin of nanoGPT and llm.c.
//
//     nanoGPT   uint16 token[n]
//     llm.c     int32 header[256]: 20240520, version 1, n; uint16 token[n]
//
// A file is a shard if it begins with llm.c's number or if its name ends in
// .bin. Any other file is text.

#pragma once

#include "data/token_file.h"
#include "data/tokens.h"

#include <stdbool.h>

// Whether the mapped file is a shard by this rule.
bool shard_is(const struct file *f, const char *path);

// The tokens in the mapping `f`, which must outlive them. 0, or -1 after
// fail(): a wrong magic number, version or length, or no tokens.
int shard_read(const struct file *f, const char *path, struct tokens *out);
