// turns.h - the ranks of a cluster, and their order of running.
//
// A rank that gives up its turn determines the next step: the rank that can go
// on first, or the network's next event if that is earlier. There is no other
// scheduler.

#pragma once

#include "virtual/network.h"

#include <setjmp.h>

struct baton;

struct request {
    struct network_op op;
    bool awaited; // the rank's present call waits for it
    bool blamed;  // the report of a deadlock names it
    struct request *next;
};

struct block {
    struct block *next;
    void *p;
};

struct virtual_rank {
    struct cluster *cluster;
    int id;
    bool over, waits;
    bool any;    // true: waits for one of its awaited requests; else for all
    bool doomed; // it is stuck forever, and must leave its call
    bool lost;   // killed or stuck: its calls return -1
    double now, until;
    struct request *requests; // under way
    struct block *blocks;     // of virtual_alloc()
    size_t alloc;
    int streams; // how many virtual_stream() has made
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
    char broken[256]; // why the run cannot go on; "" if it can
    struct virtual_rank *ranks;
};

// Executes events until a rank can go on. Returns the number of that rank, or
// the number of ranks if all have ended.
int turns_next(struct cluster *c);

// Gives up the turn until this rank can go on. Without r->waits it goes on at
// r->now. With r->waits it goes on when all requests that it awaits are
// complete (with r->any, one of them), or at r->until. A rank that is stuck
// calls turns_lose().
void turns_take(struct virtual_rank *r);

// Ends a rank that is killed or stuck: jumps out of its function from within a
// call. If the setup says that calls return, only sets r->lost.
void turns_lose(struct virtual_rank *r, enum virtual_end end);
