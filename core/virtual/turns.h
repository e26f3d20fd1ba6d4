// turns.h - the ranks of a cluster, and whose turn it is.
//
// A rank that gives up its turn finds the next: the rank that can go on first,
// or the network's next event if that is earlier. There is no other scheduler.

#ifndef VIRTUAL_TURNS_H
#define VIRTUAL_TURNS_H

#include "virtual/network.h"

#include <setjmp.h>

struct baton;

struct request {
    struct network_op op;
    bool awaited; // by the call that the rank is in
    bool blamed;  // in a deadlock: the rank waits for this one
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
    bool any;    // waits for one of its awaited requests, else for all
    bool doomed; // it is stuck for good, and must leave its call
    bool lost;   // killed or stuck: its calls return -1
    double now, until;
    struct request *requests; // begun, and not awaited yet
    struct block *blocks;     // of virtual_alloc()
    size_t alloc;
    int streams; // how many it has made
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
    char broken[256]; // why the run could not go on
    struct virtual_rank *ranks;
};

// Finds the next turn. Returns the number of a rank that can go on now, or the
// host's number if all ranks have ended.
int turns_next(struct cluster *c);

// Lets others go first, until this rank can go on. Without r->waits it goes on
// at r->now. With r->waits it goes on when all requests that it awaits are
// complete (with r->any, one of them), or at r->until. A rank that is stuck
// goes to turns_lose().
void turns_take(struct virtual_rank *r);

// Ends a rank that is killed or stuck: leaves its function from within a call.
// If the setup says that calls return, sets r->lost instead.
void turns_lose(struct virtual_rank *r, enum virtual_end end);

#endif
