// fake_nccl.h - NCCL's functions, over shared memory between forked workers.
//
// The linker takes these before NCCL's own. What is asked of a stream is done
// by that queue of a queue_device, so that a peer that does not come leaves the
// stream standing, as it would on a GPU. A communicator does not block: after
// each group of calls it is in progress for a few looks at its state, in which
// nothing may be asked of it.

#ifndef TESTS_FAKE_NCCL_H
#define TESTS_FAKE_NCCL_H

// Call once, before workers are forked.
void fake_nccl_setup(void);

// What goes wrong in the worlds that follow.
enum fake_fault {
    FAKE_FINE,
    FAKE_NO_ID,       // ncclGetUniqueId fails
    FAKE_NEVER_JOINS, // ncclCommInitRankConfig stays in progress
    FAKE_BAD_CALL,    // ncclAllReduce refuses its arguments
    FAKE_LOST_PEER    // ncclCommGetAsyncError reports one
};
void fake_nccl_fault(enum fake_fault fault);

// Looks at a communicator's state, after each group of calls, that find it in
// progress; 3 until this is called. For communicators of this process.
void fake_nccl_looks(int looks);

// Pointers in this process's calls that were no multiples of 16 so far.
int fake_nccl_unaligned(void);

// Thread blocks that this process's last communicator may take; 0: any.
int fake_nccl_ctas(void);

// 0, or -1 after fail() unless the last message says `what` and one
// communicator of this process was aborted so far.
int fake_nccl_said(const char *what);

#endif
