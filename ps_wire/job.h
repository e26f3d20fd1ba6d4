// job.h - the handshake: what a worker tells a server about the job.
//
// A server knows nothing when it starts. The first worker's HELLO tells it the
// shapes and the update rule. Every other worker must send the same. If not,
// both sides name the first setting that differs.

#pragma once

#include "base/half.h"
#include "config/settings.h"
#include "optim/optim.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ps_job {
    int rank, world;
    int index, servers; // number of the receiving server; how many there are
    bool beside;        // one server is beside each worker, on the same host
    bool threadless;    // simulated: no thread may receive between the tasks
    uint64_t n, slice;  // elements of the vector; elements of a slice
    enum dtype wire;
    enum consistency consistency;
    int bound; // of ssp
    int backup;
    bool worker_updates, elastic, priority;
    uint64_t layout; // hash of the buckets: order and sizes
    double timeout_s;
    // squeeze=: its kind, density=, levels= and feedback=; and the seed of the
    // workers' random choices, from which the servers draw theirs.
    struct sync_settings squeeze;
    uint64_t seed;
    struct optim_config optim;
};

enum { PS_JOB_BYTES = 160 + 16 * OPTIM_MAX_DECAY };

// Copies the settings that are sent in ps_job's `squeeze`.
void ps_job_squeeze(struct ps_job *j, const struct sync_settings *from);

// Write *j to out. Returns the bytes used, at most PS_JOB_BYTES.
size_t ps_job_put(uint8_t *out, const struct ps_job *j);

// Read a message of n bytes into *j. Returns 0, or -1 after fail() if it is
// truncated or has impossible settings.
int ps_job_get(struct ps_job *j, const void *data, size_t n);

// Returns 0 if both describe the same job, whatever their ranks; else -1 after
// fail() that names the first setting that differs, with both values.
int ps_job_same(const struct ps_job *first, const struct ps_job *other);
