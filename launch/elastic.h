// elastic.h - which workers of an elastic job are left, and whether the loss of
// a worker is its own or that of the whole job.

#pragma once

#include "launch/child.h"

// Returns whether there are workers to wait for. In an elastic job, once a
// worker has finished and a server has ended well, or all have ended, no other
// worker can go on: one that was started again is too late, and one that still
// runs is frozen. If a server has ended well and no worker is alive, all were
// lost, the last one after the last step. A worker that is started again would
// find no server, so the job has failed.
bool elastic_goes_on(const struct child *c, int n, bool elastic);

// Whether a dead worker says that it has lost a server. The server may have
// dropped it. Or the server itself is gone; then all workers lose it.
bool elastic_blames_server(const struct child *c);

// Once all workers have ended: the guiltiest of them (child_guilt()). NULL if
// one of them reached the end of the run.
const struct child *elastic_worst(const struct child *c, int n);

// If nobody is left but workers that blame a server, returns one of them, else
// NULL.
struct child *elastic_all_lost(struct child *c, int n);
