// simulate_mesh.h - `lockstep simulate mesh=dp16,pp8,tp8`: a step on a mesh of
// simulated workers.

#ifndef LOCKSTEP_SIMULATE_MESH_H
#define LOCKSTEP_SIMULATE_MESH_H

#include <stdbool.h>
#include <stdio.h>

// Whether words ask for it; its part of --help.
bool simulate_mesh_is_asked(int nwords, char **words);
void simulate_mesh_explain(FILE *f);

// 0, or -1 after fail().
int simulate_mesh(int nwords, char **words);

#endif
