// staging.h - a device's vector as host memory, for whoever can only send that.
//
//     device   [ bucket 2 | bucket 1 | bucket 0 ]     floats
//                               |          |          down: behind backward
//     pinned   [ bucket 2 | bucket 1 | bucket 0 ]     network reads and writes
//                               |          |          up: behind the network
//     device   [ bucket 2 | bucket 1 | bucket 0 ]
//
// Every piece has a buffer and an event of its own, so one is copied while
// those before it travel. The CPU device's memory is host memory: the vector is
// its own copy, and nothing here costs anything.

#ifndef DEVICE_STAGING_H
#define DEVICE_STAGING_H

#include "device/device.h"

struct staging;

// For `vector`, n floats on the device (borrowed), in at most `pieces` pieces
// at a time. `always` copies on the CPU device, too: for tests. 0, or -1 after
// fail().
int staging_open(struct staging **s, struct device *d, float *vector, size_t n,
                 int pieces, bool always);
void staging_close(struct staging **s);

// The host's view: n floats, for as long as the staging is open.
float *staging_host(const struct staging *s);

// Begin to copy [off, off+n) down, behind what the compute queue was asked for
// so far, as piece `piece`.
int staging_down(struct staging *s, int piece, size_t off, size_t n);

// The calling thread waits until the piece has come down.
int staging_await(const struct staging *s, int piece);

// Begin to copy [off, off+n) up. The device must be done with what is there.
int staging_up(struct staging *s, size_t off, size_t n);

// What the compute queue is asked for from now on waits for all copies up.
int staging_settle(struct staging *s);

#endif
