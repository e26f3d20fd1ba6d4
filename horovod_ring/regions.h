// regions.h - vectors of members on one host that all of them can reach.
//
// A vector in memory that other processes can map is exchanged in place. Beside
// any other stands a mirror: numbers are copied into it before an exchange, and
// out of it afterwards. The others see no difference.

#ifndef HOROVOD_RING_REGIONS_H
#define HOROVOD_RING_REGIONS_H

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
    char **at; // by rank: its vector, or its mirror
    struct shared_name *names;
    struct region *next;
};

// One more region in the list: a call of all members. Without a device the
// region is the mirror alone. `name` begins errors. 0, or -1 after fail().
int regions_add(struct region **list, struct cluster *c, struct device *dev,
                const char *name, void *data, size_t bytes);
void regions_close(struct region **list);

// The region that [data, data + bytes) is a part of; NULL where there is none.
struct region *regions_find(struct region *list, const void *data,
                            size_t bytes);

#endif
