// regions.h - vectors of members on one host that all of them can access.
//
// A vector in memory that other processes can map is exchanged in place. Any
// other vector has a mirror in shared memory: its numbers are copied into the
// mirror before an exchange and out of it afterwards. The other members see no
// difference.

#pragma once

#include "device/shared.h"

#include <stdbool.h>
#include <stddef.h>

struct cluster;
struct device;

struct region {
    char *data; // this member's vector
    size_t bytes;
    bool mirrored;
    int rank, world;
    char **at; // by rank: where its vector or mirror is mapped
    struct shared_name *names;
    struct region *next;
};

// Adds a region of `bytes` bytes at `data` to *list. All members call it.
// Without a device (NULL) the region is a mirror only. `name` begins errors.
// Returns 0, or -1 after fail(). regions_close() frees the whole list.
int regions_add(struct region **list, struct cluster *c, struct device *dev,
                const char *name, void *data, size_t bytes);
void regions_close(struct region **list);

// Returns the region that contains [data, data + bytes), or NULL.
struct region *regions_find(struct region *list, const void *data,
                            size_t bytes);
