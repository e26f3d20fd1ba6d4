// ps_round.h - one round of parameter servers and their clients, as in
// training, on ranks of one process whose messages are simulated.

#pragma once

#include "cluster/cluster.h"
#include "message/message.h"
#include "ps_wire/job.h"

struct client;
struct ps_step;

struct ps_round {
    const struct message_ops *transport; // its endpoints are NAME://RANK
    struct cluster cluster; // of the workers; servers have the ranks after them
    struct ps_job job;     // servers, beside, n, slice, worker_updates, squeeze
    float *params, *grads; // of a worker
    int threads;           // of a server
    // A worker calls it when all have come. It calls client_round(c, step).
    int (*run)(void *ctx, struct client *c, const struct ps_step *step);
    void *ctx;
};

// A rank's part. Servers that update make parameters p + g, where g is the sum
// of the gradients. 0, or -1 after fail().
int ps_round_run(const struct ps_round *r);
