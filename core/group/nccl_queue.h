// nccl_queue.h - verbs on a device's communication queue, an event each.
//
//     compute  .. fills v --*              *-- uses v
//     comm                  *-- verb 0 -*- verb 1 -*
//     host        posts verb 0          *   waits, with a deadline
//
// A verb follows what the compute queue was asked for before it was posted, and
// its ticket is complete when the event after it has happened. What the host
// asks the compute queue for after that needs no event more.
//
// Both carriers over NCCL begin their state with a struct nccl_queue, and share
// these functions of group_ops.

#ifndef GROUP_NCCL_QUEUE_H
#define GROUP_NCCL_QUEUE_H

#include "group/group.h"
#include "group/nccl.h"

// Elements whose bytes are whole packs in every format: NCCL moves 16 bytes at
// once only where all pointers of a call are multiples of 16, else a number.
enum { NCCL_GRAIN = 128 };

struct nccl_queue {
    struct nccl nccl;
    struct device_event filled; // what compute was asked for
    struct device_event *ended; // of ticket k at k % depth
    size_t depth;
    uint64_t begun, done; // tickets
    uint64_t waits_ns;    // since when the host waits; 0: it does not
};

int nccl_queue_is_supported(const struct group_job *job, char why[128]);

// 0, or -1 after fail(); close follows either way. It waits for the queue: what
// was asked for may use memory that the carrier frees next.
int nccl_queue_open(struct group *g);
void nccl_queue_close(struct group *g);

// Around what a verb asks the communication queue for.
int nccl_queue_begin(struct nccl_queue *q);
int nccl_queue_end(struct nccl_queue *q);

// The newest verb's event; NULL before the first.
const struct device_event *nccl_queue_newest(const struct nccl_queue *q);

int nccl_queue_advance(struct group *g, uint64_t *done);
int nccl_queue_wait(struct group *g, uint64_t spin_ns);
int nccl_queue_follow(struct group *g);
void nccl_queue_abort(struct group *g);

#endif
