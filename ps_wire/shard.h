// shard.h - which server owns which part of the flat vector.
//
//     row 2           row 1           row 0          (backward: from the right)
//     [ s0 | s1 | s2 ][ s0 | s1 | s2 ][ s0 | s1 | s2 ]
//     0                                              n
//
// The vector is divided into rows from its end, in the order in which backward
// fills it. Each row is divided evenly among the servers. So all servers are
// busy while backward runs, and their shards differ by at most one element.

#pragma once

#include <stddef.h>

struct shard {
    size_t n;     // elements of the whole vector
    size_t slice; // elements of one server's part of a full row
    int servers, index;
    int rows;
};

struct slice {
    size_t off, n; // of the flat vector; n may be 0 in the last row
    size_t local;  // its offset in the server's own shard
};

// The elements of a slice of slice_kb KiB, at most an even part of the vector.
size_t shard_width(size_t n, int servers, int slice_kb);

// Sets *s to the shard of server `index`. Returns 0, or -1 after fail() if it
// would have too many rows.
int shard_make(struct shard *s, size_t n, size_t slice, int servers, int index);

// This server's slice of row `row`, 0 <= row < rows.
struct slice shard_slice(const struct shard *s, int row);

// The number of rows in which this server has a part: all, or all but the last.
int shard_rows(const struct shard *s);

// The number of elements of the shard.
size_t shard_elements(const struct shard *s);
