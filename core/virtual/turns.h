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
    bool doomed; // it is stuck for good, and must leave its call
    double now, until;
    struct request *requests; // begun, and not awaited yet
    struct block *blocks;     // of virtual_alloc()
    size_t alloc;
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
// r->waits, when all requests that it awaits are complete, at most until
// r->until. Does not return where it is stuck.
void turns_take(struct virtual_rank *r);

// Leave the rank's function from within a call.
_Noreturn void turns_leave(struct virtual_rank *r, enum virtual_end end);

#endif
