// nccl.h - what both carriers over NCCL share: a communicator whose waits have
// a deadline, and an event after each verb on a device's communication queue.
//
//     compute  .. fills v --*              *-- uses v
//     comm                  *-- verb 0 -*- verb 1 -*
//     host        posts verb 0          *   waits, with a deadline
//
// A verb waits for the work that the compute queue had when it was posted. Its
// ticket is complete when the event after the verb has happened. Work that the
// host gives to the compute queue after that needs no further event.
//
// NCCL itself waits for a peer without limit. Here every wait has the cluster's
// deadline and checks for errors of the other ranks. On an error the
// communicator is aborted, which ends kernels that wait on the GPU, and the
// message names the ranks that did not come.

#pragma once

#include "device/device.h"
#include "group/group.h"

#include <nccl.h>

// A number of elements whose bytes are a multiple of 16 in every format. NCCL
// moves 16 bytes at once only if all pointers of a call are multiples of 16,
// else one number at a time.
enum { NCCL_GRAIN = 128 };

// The state of a group over NCCL begins with this.
struct nccl {
    ncclComm_t comm;
    cudaStream_t stream;        // of the communication queue
    bool lost;                  // aborted: it cannot be used any more
    struct device_event filled; // the compute queue's work before a verb
    struct device_event *ended; // of ticket k at k % depth
    size_t depth;
    uint64_t begun, done; // tickets
    uint64_t waits_ns;    // when the host began to wait; 0: it does not
};

// NCCL's name of a number format.
ncclDataType_t nccl_type(enum dtype t);

// To be called before and after a verb gives its work to the communication
// queue.
void nccl_begin(struct group *g);
void nccl_end(struct group *g);

// Checks r, the result of a call of NCCL that errors name `call`, and waits
// until the call is done. 0, or -1 after fail() and nccl_abort().
int nccl_asked(struct group *g, ncclResult_t r, const char *call);

// Whether a call's result lets others follow.
bool nccl_has_begun(ncclResult_t r);

// Ends the group of calls since ncclGroupStart(). `first` is the first of their
// results for which nccl_has_begun() is false; if there is none, any of them.
// Returns as nccl_asked().
int nccl_grouped(struct group *g, ncclResult_t first, const char *call);

// The messages of an all_to_all, all in one group of calls. group.c has copied
// the member's own chunk. 0, or -1 after fail().
int nccl_all_to_all(struct group *g, const struct group_op *op);

// The calling thread waits until all verbs begun so far are complete. 0, or -1
// after fail() that names the ranks that did not come.
int nccl_await_all(struct group *g);

// Functions of struct group_ops. nccl_is_supported(): NCCL cannot join host
// memory, nor two ranks that share a GPU. nccl_close() waits for the queue,
// whose work may use memory that the carrier frees next. nccl_abort() ends
// kernels that wait for a peer.
int nccl_is_supported(const struct group_job *job, char why[128]);
int nccl_open(struct group *g);
int nccl_advance(struct group *g, uint64_t *done);
int nccl_wait(struct group *g);
void nccl_follow(struct group *g);
void nccl_abort(struct group *g);
void nccl_close(struct group *g);
