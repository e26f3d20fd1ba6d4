// shard.h - lab 3: the functions that shard.c defines.

#ifndef LABS_SHARD_H
#define LABS_SHARD_H

#include "labs/lab.h"

// Says which elements of a vector server number `index` holds. Every process
// computes this by itself, without a message.
struct shard {
    size_t n;     // elements of the whole vector, at least 1
    size_t slice; // elements of one server's part of a whole row, at least 1
    int servers, index;
    int rows;
};

struct slice {
    size_t off, n; // elements off .. off+n-1; n may be 0 in the last row
    size_t local;  // the first one's offset in the server's own memory
};

// Fills *s for server `index`. Returns 0, or -1 if there would be more than
// 1 << 24 rows.
int shard_make(struct shard *s, size_t n, size_t slice, int servers, int index);

// Returns this server's part of row `row`, 0 <= row < s->rows.
struct slice shard_slice(const struct shard *s, int row);

// The number of rows in which this server has at least one element.
int shard_rows(const struct shard *s);

// The number of elements that this server holds in all.
size_t shard_elements(const struct shard *s);

#endif
