// machine.h - lab.h's calls on the virtual cluster, by those of virtual.h.

#ifndef LABS_MACHINE_H
#define LABS_MACHINE_H

#include "labs/ops.h"

#include "virtual/virtual.h"

// What lab.state points to.
struct lab_machine {
    struct virtual_rank *rank;
    int others;   // added to a rank's number: its thread of the same number
    int *missing; // the rank that lab_missing() named first; -1: none
};

extern const struct lab_ops lab_machine_ops;

#endif
