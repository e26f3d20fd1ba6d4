// nccl_queue.h - puts verbs on a device's communication queue, and records an
// event after each.
//
//     compute  .. fills v --*              *-- uses v
//     comm                  *-- verb 0 -*- verb 1 -*
//     host        posts verb 0          *   waits, with a deadline
//
// A verb waits for the work that the compute queue had when it was posted. Its
// ticket is complete when the event after the verb has happened. Work that the
// host gives to the compute queue after that needs no further event.
//
// Both carriers over NCCL begin their state with a struct nccl_queue, and share
// these functions of group_ops.

#pragma once

#include "group/group.h"
#include "group/nccl.h"

// A number of elements whose bytes are a multiple of 16 in every format. NCCL
// moves 16 bytes at once only if all pointers of a call are multiples of 16,
// else one number at a time.
enum { NCCL_GRAIN = 128 };

struct nccl_queue {
    struct nccl nccl;
    struct device_event filled; // the compute queue's work before a verb
    struct device_event *ended; // of ticket k at k % depth
    size_t depth;
    uint64_t begun, done; // tickets
    uint64_t waits_ns;    // when the host began to wait; 0: it does not
};

// nccl_is_supported() for a group.
int nccl_queue_is_supported(const struct group_job *job, char why[128]);

// 0, or -1 after fail(). nccl_queue_close() must be called in both cases. It
// waits for the queue, whose work may use memory that the carrier frees next.
int nccl_queue_open(struct group *g);
void nccl_queue_close(struct group *g);

// To be called before and after a verb gives its work to the communication
// queue. 0, or -1 after fail().
int nccl_queue_begin(struct nccl_queue *q);
int nccl_queue_end(struct nccl_queue *q);

// The messages of an all_to_all, all in one group of calls. group.c has copied
// the member's own chunk. 0, or -1 after fail().
int nccl_queue_all_to_all(struct nccl *n, const struct group *g,
                          const struct group_op *op);

// The event of the newest verb; NULL before the first verb.
const struct device_event *nccl_queue_newest(const struct nccl_queue *q);

// Functions of struct group_ops.
int nccl_queue_advance(struct group *g, uint64_t *done);
int nccl_queue_wait(struct group *g, uint64_t spin_ns);
int nccl_queue_follow(struct group *g);
void nccl_queue_abort(struct group *g);
