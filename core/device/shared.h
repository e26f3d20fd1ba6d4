// shared.h - host memory that other processes of this host can map.
//
// It is an anonymous file (memfd). It has no name that could be left behind,
// and vanishes when the last process that maps it ends, however it ends. Other
// processes of the same user can open it as /proc/PID/fd/FD.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The place of such memory: plain data, which can be sent to other processes.
struct shared_name {
    int32_t pid, fd;
    uint64_t inode, bytes;
};

// Allocates memory, zeroes it and touches all of it, so that no later access
// can fail because memory is short. *name becomes its place. NULL after fail().
void *shared_alloc(size_t bytes, struct shared_name *name);
void shared_free(void *p, const struct shared_name *name);

// Maps the memory of another process, to read it, and with `write` also to
// write it. NULL after fail().
void *shared_map(const struct shared_name *name, bool write);
void shared_unmap(void *p, const struct shared_name *name); // takes NULL
