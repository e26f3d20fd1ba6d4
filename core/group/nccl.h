// nccl.h - a communicator of GPUs that does not wait for ever.
//
// NCCL itself waits for a peer as long as it takes. Here every wait has the
// cluster's deadline and looks for errors of the other ranks; when one has come
// the communicator is aborted, which frees the GPU of kernels that wait, and
// the message says who did not come.

#ifndef GROUP_NCCL_H
#define GROUP_NCCL_H

#include "device/device.h"

#include <nccl.h>

struct cluster;

struct nccl {
    const char *name; // begins messages
    struct cluster *cluster;
    struct device *dev;
    ncclComm_t comm;
    cudaStream_t stream; // of the communication queue
    bool lost;           // aborted: nothing may be asked of it
};

// Can NCCL join these members' GPUs? 1; 0 with the reason in `why` where the
// memory is the host's, or where two ranks share a GPU; -1 after fail(). A call
// of all members.
int nccl_is_supported(struct cluster *cluster, struct device *dev,
                      char why[128]);

// All ranks together; `name` is borrowed. A collective takes at most `ctas`
// thread blocks, a multiprocessor each; 0: as NCCL likes. 0, or -1 after
// fail().
int nccl_open(struct nccl *n, struct cluster *cluster, struct device *dev,
              const char *name, int ctas);
void nccl_close(struct nccl *n); // takes a zeroed one

// What a call returned: 0, or -1 after fail(), the communicator aborted.
int nccl_asked(struct nccl *n, ncclResult_t r, const char *call);

// End the calls since ncclGroupStart(); `first` is the first result of them
// that is neither ncclSuccess nor ncclInProgress, if there is one. As
// nccl_asked().
int nccl_grouped(struct nccl *n, ncclResult_t first, const char *call);

// The calling thread waits for what was asked for before `e`. 0, or -1 after
// fail() that names the ranks that did not come.
int nccl_await(struct nccl *n, const struct device_event *e);

// A rest of a wait that began at `since` (now_ns()). 0, or -1 after fail() when
// a peer is lost or the deadline has passed, the communicator aborted.
int nccl_rest(struct nccl *n, uint64_t since);

// Free the GPU of whatever waits for a peer; nothing may be asked for any more.
void nccl_abort(struct nccl *n);

ncclDataType_t nccl_type(enum dtype t);

#endif
