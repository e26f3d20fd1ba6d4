// mesh_table.h - prints the fastest ways to use a number of workers.

#ifndef LOCKSTEP_MESH_TABLE_H
#define LOCKSTEP_MESH_TABLE_H

#include "lockstep/mesh_search.h"

struct budget;

struct mesh_table {
    const struct mesh_question *question;
    const struct budget *budget; // of the whole training
    bool gpu;                    // the workers are GPUs
};

// Prints the table, the settings of the fastest way, what is as fast, the
// memory and times of its stages, and what the columns mean.
void mesh_table(const struct mesh_table *t, const struct mesh_answers *a);

#endif
