// counters.h - members on one host publish their progress in shared memory.
//
// Every member has a slot, which all others read. A slot has two places
// (buffers) for numbers, and three counters. A counter only grows, and has a
// cache line of its own:
//
//     READY    steps for which this member's numbers may be read and written
//     SUMMED   steps in which this member has done its part
//     MOVED    how often this member has moved bytes of a send or a receive
//
// A waiter spins for a while after the last change. It spins longer than a
// cache line needs to reach another core, but not as long as a sleep and a
// wake-up take. Then it sleeps on a futex. A member that updates a counter
// wakes the sleepers. A sleeper wakes up now and then to check that the others'
// processes still run (with a pidfd for each).

#pragma once

#include "device/shared.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cluster;
struct group_job;
struct slot; // one member's, in its shared memory

enum counter { READY, SUMMED, MOVED, COUNTERS };

enum {
    COUNTERS_WORLD = 256,    // members at most
    COUNTERS_PLACE = 1 << 20 // bytes of a place
};

struct counters {
    const char *name; // begins errors
    int rank, world;
    const int *ranks; // borrowed: the members' ranks in the job, for error
                      // texts; if NULL, they are the members' numbers
    double timeout_s;
    bool crowded;       // more members than processors
    _Atomic bool woken; // by counters_wake()
    struct peer *peers;
    uint64_t seen; // the sum of all counters at the last check
    int culprit;   // after a failure: the rank at fault, or -1
};

// Whether all members are on one host and can map each other's memory: 1 or 0,
// the same on every member, or -1 after fail(). If 0, `why` is the reason. All
// members call it.
int counters_possible(const struct group_job *job, char why[128]);

// Share the counters with all members; `name` begins errors. All members call
// it. Returns 0, or -1 after fail(); counters_close() follows in both cases.
int counters_open(struct counters *c, struct cluster *cluster,
                  const char *name);
void counters_close(struct counters *c);

// Set this member's counter to `value` and wake the sleepers.
void counters_set(struct counters *c, enum counter k, uint64_t value);

// Member `rank`'s counter; the smallest value of all members' counters.
uint64_t counters_read(const struct counters *c, int rank, enum counter k);
uint64_t counters_least(const struct counters *c, enum counter k);

// The place of member `rank` for turn number `turn`, COUNTERS_PLACE bytes. The
// two places are used in turn.
char *counters_place(const struct counters *c, int rank, uint64_t turn);

// What a member waits for: that counter k of member `rank` (-1: of all members)
// reaches `goal`. For MOVED any change counts.
struct awaited {
    enum counter k;
    uint64_t goal;
    int rank;
};
bool counters_has_come(const struct counters *c, const struct awaited *a);

// Returns when come(arg) is true, or after counters_wake(). Spins for spin_ns
// after the last change of any counter, then sleeps. `first` is what the caller
// needs first: if its member is gone, or late by the deadline, the call returns
// -1 after fail() that names that member. Else it returns 0. The deadline does
// not count before since_ns (struct group).
int counters_wait(struct counters *c, uint64_t since_ns, uint64_t spin_ns,
                  const struct awaited *first, bool (*come)(const void *arg),
                  const void *arg);

// From any thread of this member: its present or next counters_wait() returns.
void counters_wake(struct counters *c);

// After a failure: tell all members which rank is at fault.
void counters_abort(struct counters *c);
