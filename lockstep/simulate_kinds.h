// simulate_kinds.h - what `lockstep simulate` can simulate instead of one
// exchange of gradients.

#ifndef LOCKSTEP_SIMULATE_KINDS_H
#define LOCKSTEP_SIMULATE_KINDS_H

#include <stdio.h>

struct simulate_kind {
    const char *key;          // a word that begins so asks for it
    void (*explain)(FILE *f); // prints its part of `lockstep simulate --help`
    int (*run)(int nwords, char **words); // 0, or -1 after fail()
};

// A collective, as textbooks teach it; a step on a mesh of workers; the
// timetable of a pipeline.
extern const struct simulate_kind simulate_op, simulate_mesh, simulate_pipeline;

#endif
