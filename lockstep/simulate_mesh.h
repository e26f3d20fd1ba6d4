// simulate_mesh.h - `lockstep simulate mesh=dp16,pp8,tp8` simulates a step on a
// mesh of workers.

#ifndef LOCKSTEP_SIMULATE_MESH_H
#define LOCKSTEP_SIMULATE_MESH_H

#include <stdbool.h>
#include <stdio.h>

// Returns whether one of the words is mesh=.
bool simulate_mesh_is_asked(int nwords, char **words);

// Prints its part of `lockstep simulate --help`.
void simulate_mesh_explain(FILE *f);

// Simulates the step that the words ask for, and prints it. 0, or -1 after
// fail().
int simulate_mesh(int nwords, char **words);

#endif
