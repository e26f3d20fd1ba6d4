// streams_virtual.h - links between members of a virtual cluster.

#pragma once

#include "horovod_ring/streams.h"

// For the ranks of a cluster_virtual(). No real time passes, so a wait of
// STREAMS_PATIENT_MS or more ends at the cluster's deadline instead, which
// counts in virtual time: then it fails, and names the member that did not
// answer.
enum { STREAMS_PATIENT_MS = 1000000 };

extern const struct streams_ops streams_virtual;
