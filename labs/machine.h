// machine.h - the calls of lab.h on the virtual cluster of virtual.h.

#ifndef LABS_MACHINE_H
#define LABS_MACHINE_H

#include "labs/ops.h"

#include "virtual/virtual.h"

// The state of a struct lab on the virtual cluster.
struct lab_machine {
    struct virtual_rank *rank;
    int others;   // add it to a rank of the lab to get the virtual rank of that
                  // rank's thread number lab.thread
    int *missing; // the rank that lab_missing() named first; -1: none
};

extern const struct lab_ops lab_machine_ops;

#endif
