// predict_mesh.h - `lockstep predict hosts=8 memory=16gb ..`: which mesh of
// workers trains a model fastest.

#ifndef LOCKSTEP_PREDICT_MESH_H
#define LOCKSTEP_PREDICT_MESH_H

#include <stdbool.h>
#include <stdio.h>

// Whether words ask for it: one of hosts=, memory=, mesh=.
bool predict_mesh_is_asked(int nwords, char **words);

void predict_mesh_explain(FILE *f);

// 0, or -1 after fail().
int predict_mesh(int nwords, char **words);

#endif
