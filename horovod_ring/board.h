// board.h - what workers of one host tell each other through shared memory.
//
// Every worker has a few counters that only go up and that all others read;
// one cache line each:
//
//     READY    vectors whose numbers are complete on this worker
//     SUMMED   vectors whose chunk this worker has summed
//     GIVEN    pieces of a broadcast that lie in this worker's window
//     COPIED   pieces that this worker has copied
//
// Who waits spins for BOARD_SPIN_NS after the last change, which is longer than
// a cache line takes and shorter than a sleep, and then sleeps on a futex, the
// bell, that whoever changes a counter rings for those who sleep. Sleepers look
// now and then whether the others' processes are still there (a pidfd each).

#ifndef HOROVOD_RING_BOARD_H
#define HOROVOD_RING_BOARD_H

#include "device/shared.h"

#include <stdatomic.h>
#include <stdbool.h>

struct cluster;
struct device;

enum board_word { READY, SUMMED, GIVEN, COPIED, BOARD_WORDS };

enum {
    BOARD_SPIN_NS = 20000,
    BOARD_WINDOW = 1 << 18, // elements of a piece of a broadcast
};

struct page; // one worker's, in its shared memory

// What a worker shows the others: its page, and a vector that they may read and
// write.
struct board_peer {
    struct shared_name page_name, vector_name;
    struct page *page;
    float *vector;
    int watch; // its pidfd
};

struct board {
    struct device *host; // where the page lies; borrowed
    struct page *own;
    int rank, world;
    double timeout_s;
    bool crowded;             // more workers than processors
    struct board_peer *peers; // by rank, this worker too
    int culprit;              // after a failure: whose fault, or -1
};

// Meet all workers, and map what they share: of this worker `vector`, which
// `host` has shared. 0, or -1 after fail(); board_close() follows either way.
int board_open(struct board *b, struct cluster *c, struct device *host,
               float *vector);
void board_close(struct board *b);

// This worker's counter is `value` now.
void board_tell(struct board *b, enum board_word w, uint64_t value);

// Worker `rank`'s counter, and the least of all workers'.
uint64_t board_read(const struct board *b, int rank, enum board_word w);
uint64_t board_least(const struct board *b, enum board_word w);

// Call work() until it returns true: what is waited for has come, at the latest
// when every worker's word w is `goal`. 0, or -1 after fail() that names who is
// gone or has not come.
int board_await(struct board *b, enum board_word w, uint64_t goal,
                bool (*work)(void *arg), void *arg);

// Where a piece of a broadcast lies, of at most BOARD_WINDOW elements: worker
// 0 fills two places by turns.
float *board_window(const struct board *b, uint64_t piece);

// Whether all workers are on one host and may map each other's memory: 1 or 0,
// the same on every worker, or -1 after fail(). `why` says what keeps them.
int board_possible(struct cluster *c, char why[128]);

#endif
