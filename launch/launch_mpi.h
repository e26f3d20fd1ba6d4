// launch_mpi.h - starts programs under mpirun.

#pragma once

#include "config/config.h"

struct argv;
struct job;
struct netns;

// Separates two programs in the words of `lockstep pin`: the ranks behind the
// workers run the second.
#define PIN_SERVER "@server"

// Starts workers of `program`, one of Lockstep's, under mpirun and through
// `lockstep pin`, on the emulated hosts `net` (NULL: none). It reads only
// workers and hosts of *r. `words` are the program's arguments. If servers > 0,
// the job has that many more ranks, behind the workers; they run the command
// *server. 0, or -1 after fail().
int launch_mpi(struct job *j, const struct run *r, const struct netns *net,
               const char *program, const struct argv *words, int servers,
               const struct argv *server);
