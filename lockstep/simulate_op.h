// simulate_op.h - `lockstep simulate op=broadcast` simulates a collective.

#ifndef LOCKSTEP_SIMULATE_OP_H
#define LOCKSTEP_SIMULATE_OP_H

#include <stdbool.h>
#include <stdio.h>

// Returns whether one of the words is op=.
bool simulate_op_is_asked(int nwords, char **words);

// Simulates all that the words ask for. Returns the exit status, or -1 after
// fail().
int simulate_op(int nwords, char **words);

// Prints its part of `lockstep simulate --help`.
void simulate_op_explain(FILE *f);

#endif
