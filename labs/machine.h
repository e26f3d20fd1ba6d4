// machine.h - labs on the virtual cluster: lab.h's calls by those of virtual.h.

#ifndef LABS_MACHINE_H
#define LABS_MACHINE_H

#include "labs/ops.h"

#include "virtual/virtual.h"

// What lab.state points to.
struct lab_machine {
    struct virtual_rank *rank;
    int others;   // what is added to a rank: its thread of this number
    int *missing; // whom lab_missing() named first; -1: nobody
};

extern const struct lab_ops lab_machine_ops;

#endif
