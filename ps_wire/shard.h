// shard.h - which server has which part of the flat vector.
//
//     row 2           row 1           row 0          (backward: from the right)
//     [ s0 | s1 | s2 ][ s0 | s1 | s2 ][ s0 | s1 | s2 ]
//     0                                              n
//
// The vector is cut into rows from its end, as backward fills it; every row is
// cut evenly over the servers. So all servers are busy all the time that
// backward delivers, and their shards differ by at most one element.

#ifndef PS_WIRE_SHARD_H
#define PS_WIRE_SHARD_H

#include <stddef.h>

struct shard {
    size_t n;     // elements of the whole vector
    size_t slice; // elements of one server's part of a whole row
    int servers, index;
    int rows;
};

struct slice {
    size_t off, n; // of the flat vector; n may be 0 in the last row
    size_t local;  // where it lies in the server's own shard
};

// The shard of server `index`. 0, or -1 after fail() where it has too many
// rows to number.
int shard_make(struct shard *s, size_t n, size_t slice, int servers, int index);

// Row r, 0 <= r < rows.
struct slice shard_slice(const struct shard *s, int row);

// Rows of which this server has a part: all, or all but the last.
int shard_rows(const struct shard *s);

// Elements of the shard.
size_t shard_elements(const struct shard *s);

#endif
