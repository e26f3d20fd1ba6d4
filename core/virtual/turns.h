// turns.h - the ranks of a cluster, and whose turn it is.
//
// Whoever gives up its turn looks for the next: the rank that can go on
// earliest, or the network's next event, whichever comes first. There is no
// other scheduler.

#ifndef VIRTUAL_TURNS_H
#define VIRTUAL_TURNS_H

#include "virtual/network.h"

#include <setjmp.h>

struct baton;

struct request {
    struct network_op op;
    bool awaited; // by the call that the rank is in
    bool blamed;  // where that never ends: it is what the rank waits for
    struct request *next;
};

struct block {
    struct block *next;
    size_t bytes;
    void *p;
};

struct virtual_rank {
    struct cluster *cluster;
    int id;
    bool over, waits;
    bool any;    // it waits for one of what it awaits, else for all
    bool doomed; // it is stuck for good, and must leave its call
    bool lost;   // killed or stuck: its calls return -1
    double now, until;
    struct request *requests; // begun, and not awaited yet
    struct block *blocks;     // of virtual_alloc()
    size_t alloc;
    int streams; // that it has made
    jmp_buf leave;
};

struct cluster {
    const struct virtual_setup *setup;
    virtual_main *body;
    void *arg;
    struct virtual_result *result;
    struct network *network;
    struct baton *baton;
    uint64_t turns;   // taken so far
    char broken[256]; // why the run itself could not go on
    struct virtual_rank *ranks;
};

// The number of the rank whose turn it is, which can go on now; that of the
// host where all ranks are over.
int turns_next(struct cluster *c);

// Let others go first, until this rank can go on: at r->now; or, where
// r->waits, when all requests that it awaits are complete, or with r->any one
// of them, at most until r->until. Where it is stuck: turns_lose().
void turns_take(struct virtual_rank *r);

// The rank is killed or stuck. Leaves its function from within a call, unless
// the setup says that calls return: then r->lost.
void turns_lose(struct virtual_rank *r, enum virtual_end end);

#endif
