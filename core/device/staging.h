// staging.h - a host copy of a device's vector, for code that can send only
// host memory.
//
//     device   [ bucket 2 | bucket 1 | bucket 0 ]     floats
//                               |          |          down: after backward
//     pinned   [ bucket 2 | bucket 1 | bucket 0 ]     network reads and writes
//                               |          |          up: after the network
//     device   [ bucket 2 | bucket 1 | bucket 0 ]
//
// Every piece has its own event, so one piece is copied while earlier ones are
// sent. The CPU device's memory is host memory: there the vector is its own
// host copy, and these functions cost nothing.

#pragma once

#include "device/device.h"

struct staging;

// Makes a host copy for `vector`, n floats on the device (borrowed). At most
// `pieces` pieces are copied at a time. With `always` there is a copy on the
// CPU device, too, for tests. 0, or -1 after fail().
int staging_open(struct staging **s, struct device *d, float *vector, size_t n,
                 int pieces, bool always);
void staging_close(struct staging **s);

// The host copy: n floats, valid until staging_close().
float *staging_host(const struct staging *s);

// Begins to copy elements [off, off+n) to the host as piece number `piece`,
// after all work that the compute queue has so far.
void staging_down(struct staging *s, int piece, size_t off, size_t n);

// The calling thread waits until the piece is on the host.
void staging_await(const struct staging *s, int piece);

// Begins to copy elements [off, off+n) to the device, which must not use their
// old values any more.
void staging_up(struct staging *s, size_t off, size_t n);

// Later work of the compute queue waits for all copies to the device so far.
void staging_settle(struct staging *s);
