// fake_nccl.h - NCCL's functions, over shared memory between workers.
//
// The linker takes these functions instead of NCCL's. A stream is a queue of a
// queue_device, or a stream of the emulated GPU. It waits for a peer that does
// not come, as on a GPU.
// Communicators are nonblocking: after each group of calls,
// ncclCommGetAsyncError() first says ncclInProgress a few times. Until it says
// something else, the communicator must not be used.

#pragma once

// Must be called once, before workers are forked. Programs that start by
// themselves do not call it: they share the file that FAKE_NCCL names.
void fake_nccl_setup(void);

// The fault of the worlds that are opened next.
enum fake_fault {
    FAKE_FINE,
    FAKE_NO_ID,       // ncclGetUniqueId fails
    FAKE_NEVER_JOINS, // ncclCommInitRankConfig stays in progress
    FAKE_BAD_CALL,    // ncclAllReduce refuses its arguments
    FAKE_LOST_PEER    // ncclCommGetAsyncError reports a lost peer
};
void fake_nccl_fault(enum fake_fault fault);

// Sets how often ncclCommGetAsyncError() says ncclInProgress after each group
// of calls, for communicators of this process. The default is 3.
void fake_nccl_looks(int looks);

// How many pointers in this process's calls so far were not multiples of 16.
int fake_nccl_unaligned(void);

// The most thread blocks that this process's last communicator may use; 0: any
// number.
int fake_nccl_ctas(void);

// Returns 0 if the last message contains `what` and this process has aborted
// exactly one communicator. Else -1 after fail().
int fake_nccl_said(const char *what);
