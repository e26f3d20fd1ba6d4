// nccl.h - an NCCL communicator whose waits have a deadline.
//
// NCCL itself waits for a peer without limit. Here every wait has the cluster's
// deadline and checks for errors of the other ranks. On an error the
// communicator is aborted, which ends kernels that wait on the GPU, and the
// message names the ranks that did not come.

#pragma once

#include "device/device.h"

#include <nccl.h>

struct cluster;

struct nccl {
    const char *name; // begins messages
    struct cluster *cluster;
    struct device *dev;
    ncclComm_t comm;
    cudaStream_t stream; // of the communication queue
    bool lost;           // aborted: it cannot be used any more
};

// Whether NCCL can join these members' GPUs: 1; 0 with the reason in `why` if
// the memory is the host's or two ranks share a GPU; -1 after fail(). All
// members must call it.
int nccl_is_supported(struct cluster *cluster, struct device *dev,
                      char why[128]);

// Makes a communicator of all ranks, which must all call it. `name` is
// borrowed. A collective takes at most `ctas` thread blocks, each on its own
// multiprocessor; 0: as many as NCCL chooses. 0, or -1 after fail().
int nccl_open(struct nccl *n, struct cluster *cluster, struct device *dev,
              const char *name, int ctas);
void nccl_close(struct nccl *n); // takes a zeroed one

// Checks r, the result of a call of NCCL that errors name `call`, and waits
// until the call is done. 0, or -1 after fail() and nccl_abort().
int nccl_asked(struct nccl *n, ncclResult_t r, const char *call);

// Ends the group of calls since ncclGroupStart(). `first` is the first of their
// results that is neither ncclSuccess nor ncclInProgress; if there is none, any
// of them. Returns as nccl_asked().
int nccl_grouped(struct nccl *n, ncclResult_t first, const char *call);

// The calling thread waits until event `e` has happened. 0, or -1 after fail()
// that names the ranks that did not come.
int nccl_await(struct nccl *n, const struct device_event *e);

// Naps once during a wait that began at `since` (now_ns()). 0, or -1 after
// fail() and nccl_abort() if a peer is lost or the deadline has passed.
int nccl_rest(struct nccl *n, uint64_t since);

// Aborts the communicator, which ends kernels that wait for a peer. It cannot
// be used any more.
void nccl_abort(struct nccl *n);

// NCCL's name of a number format.
ncclDataType_t nccl_type(enum dtype t);
