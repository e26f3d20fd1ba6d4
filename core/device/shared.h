// shared.h - host memory that other processes of this host can map.
//
// An anonymous file (memfd): it has no name that could be left behind, and is
// gone with the last process that maps it, however that ended. Others reach it
// as /proc/PID/fd/FD, which the same user may open.

#ifndef DEVICE_SHARED_H
#define DEVICE_SHARED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Where it is: plain data, to be sent to whoever shall map it.
struct shared_name {
    int32_t pid, fd;
    uint64_t inode, bytes;
};

// Zeroed and all there, so that no later access can fail for want of memory.
// NULL after fail().
void *shared_alloc(size_t bytes, struct shared_name *name);
void shared_free(void *p, const struct shared_name *name);

// Another process's memory, to read or also to write. NULL after fail().
void *shared_map(const struct shared_name *name, bool write);
void shared_unmap(void *p, const struct shared_name *name); // takes NULL

#endif
