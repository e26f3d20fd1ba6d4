// predict_mesh.h - `lockstep predict hosts=8 memory=16gb ..` predicts which
// mesh of workers trains a model fastest.

#ifndef LOCKSTEP_PREDICT_MESH_H
#define LOCKSTEP_PREDICT_MESH_H

#include <stdbool.h>
#include <stdio.h>

// Returns whether the words ask for a mesh: one is hosts=, memory= or mesh=.
bool predict_mesh_is_asked(int nwords, char **words);

// Prints the part of `lockstep predict --help` about meshes.
void predict_mesh_explain(FILE *f);

// Prints the answer for these words. 0, or -1 after fail().
int predict_mesh(int nwords, char **words);

#endif
