// counters.h - what members on one host tell each other through shared memory.
//
// Every member has a slot: counters that only go up and that all others read,
// one cache line each, and two places for numbers that others read:
//
//     READY    steps for which this member's numbers may be read and written
//     SUMMED   steps in which this member has done its part
//     MOVED    changes to what this member sends to one other, or receives
//
// A waiter spins for a while after the last change, which is longer than a
// cache line takes and shorter than a sleep, and then sleeps on a futex. A
// member that updates a counter wakes the sleepers. Now and then a sleeper
// looks whether the others' processes still run (a pidfd each).

#ifndef HOROVOD_RING_COUNTERS_H
#define HOROVOD_RING_COUNTERS_H

#include "device/shared.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cluster;
struct slot; // one member's, in its shared memory

enum counter { READY, SUMMED, MOVED, COUNTERS };

enum {
    COUNTERS_WORLD = 256,    // members at most
    COUNTERS_PLACE = 1 << 20 // bytes of a place
};

struct counters {
    const char *name; // begins errors
    int rank, world;
    const int *ranks; // in the job, for messages; NULL: the same. Borrowed
    double timeout_s;
    bool crowded; // more members than processors
    struct peer *peers;
    uint64_t seen; // all counters' sum, at the last look
    int culprit;   // after a failure: whose fault, or -1
};

// Whether all members are on one host and may map each other's memory: 1 or 0,
// the same on every member, or -1 after fail(). `why` says what keeps them.
int counters_possible(struct cluster *c, char why[128]);

// Meet all members. 0, or -1 after fail(); counters_close() follows either way.
int counters_open(struct counters *c, struct cluster *cluster,
                  const char *name);
void counters_close(struct counters *c);

// This member's counter is `value` from now on.
void counters_set(struct counters *c, enum counter k, uint64_t value);

// Member `rank`'s counter, and the least of all members'.
uint64_t counters_read(const struct counters *c, int rank, enum counter k);
uint64_t counters_least(const struct counters *c, enum counter k);

// One of the two places of member `rank`, COUNTERS_PLACE bytes.
char *counters_place(const struct counters *c, int rank, uint64_t turn);

// What a member waits for: that counter k is `goal` on `rank` (-1: on all); of
// MOVED any change.
struct awaited {
    enum counter k;
    uint64_t goal;
    int rank;
};
bool counters_has_come(const struct counters *c, const struct awaited *a);

// Return when come(arg) is true: spin for spin_ns after any counter has
// changed, then sleep. 0, or -1 after fail() that names the member that is
// gone, or late by the deadline, without which `first` cannot come.
int counters_wait(struct counters *c, uint64_t spin_ns,
                  const struct awaited *first, bool (*come)(const void *arg),
                  const void *arg);

// Tell all members whose fault a failure was.
void counters_abort(struct counters *c);

#endif
