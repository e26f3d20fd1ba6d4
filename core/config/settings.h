// settings.h - the settings of a backend: plain data, one member for each key.
//
// The [backend] rows of keys.c fill it. 0 or "auto" means that the user left a
// setting open. sync_derive() (sync/derive.h) chooses most of these once, and
// the backend gets the result. The others are chosen by the code that reads
// them.

#pragma once

#include "base/half.h"

#include <stdbool.h>
#include <stdint.h>

enum { CONFIG_PATH = 1024, CONFIG_WORD = 64 };

// The order of each enum is that of its key's words.
enum staging_kind { STAGING_AUTO, STAGING_ALWAYS };
enum consistency { CONSISTENCY_BSP, CONSISTENCY_SSP, CONSISTENCY_ASP };
enum updater { UPDATER_AUTO, UPDATER_SERVER, UPDATER_WORKER };
enum algorithm { // allreduce/algorithm.h
    ALGORITHM_AUTO,
    ALGORITHM_RING,
    ALGORITHM_HALVING,
    ALGORITHM_DOUBLING,
    ALGORITHM_TREE,
    ALGORITHM_LIBRARY,
};
#define ALGORITHM_WORDS "auto", "ring", "halving", "doubling", "tree", "library"
enum bucket_kind { BUCKET_SIZE, BUCKET_BLOCK };
enum shard_level { // each includes those above it
    SHARD_STATE = 1,
    SHARD_GRADS,
    SHARD_PARAMS
};
enum offload_kind { OFFLOAD_NONE, OFFLOAD_DISK };
enum squeeze_kind {
    SQUEEZE_NONE,
#define COMPRESSOR(kind, word, ops) SQUEEZE_##kind,
#include "config/compressors.def"
#undef COMPRESSOR
    SQUEEZE_KINDS
};
enum squeeze_scope { SCOPE_BUCKET, SCOPE_TENSOR, SCOPE_MODEL };
enum transport_kind {
    TRANSPORT_AUTO,
    TRANSPORT_TCP,
    TRANSPORT_SHM,
    TRANSPORT_ZMQ,
    TRANSPORT_MPI,
    TRANSPORT_LIBRARY, // Open MPI's own collectives
};

// servers=COUNT, or ENDPOINT,ENDPOINT..: the number of servers, and their
// endpoints if they are known. A count of 0: left open.
struct sync_servers {
    int count;
    char endpoints[CONFIG_PATH];
};

struct sync_consistency {
    enum consistency kind;
    int bound; // ssp: most steps between the fastest and the slowest worker
};

// inject=KIND:STEP[:MS][@RANK]: a fault on purpose at that step (from 1), on
// that rank (0): a delay of MS, an error, SIGKILL, or a NaN or infinite element
// in the gradient of the first bucket.
struct sync_fault {
    enum {
        FAULT_NONE,
        FAULT_DELAY,
        FAULT_FAIL,
        FAULT_KILL,
        FAULT_NAN,
        FAULT_INF
    } kind;
    uint64_t at; // the step
    int ms;      // length of a delay
    int rank;    // of the job
};

// mistake=WORD: a common mistake of training programs, on purpose. With
// own_steps the worker `rank` stops after so many steps.
struct sync_mistake {
    enum {
        MISTAKE_NONE,
        MISTAKE_TWO_UPDATES,
        MISTAKE_LOCAL_CLIP,
        MISTAKE_SAME_SEED,
        MISTAKE_OWN_STEPS,
        MISTAKES
    } kind;
    int rank, steps;
};

// stages=7,5: the number of layers of each part of a model that is cut into
// stages.
enum { STAGES_PARTS = 64 };
struct stage_layers {
    int n; // parts; 0: cut evenly
    int layers[STAGES_PARTS];
};

struct sync_settings {
    enum dtype wire;
    int overlap; // bool
    enum staging_kind staging;
    enum bucket_kind bucket;
    double bucket_mb; // MiB
    int slice_kb;     // KiB
    struct sync_servers servers;
    int server_threads;
    struct sync_consistency consistency;
    int backup; // workers
    enum updater update;
    int elastic, priority; // bool
    enum algorithm algorithm;
    int ctas;  // most thread blocks of a collective of NCCL; 0: its choice
    int shard; // enum shard_level: which vectors are cut into shards
    enum offload_kind offload; // where a worker's state is
    int every;                 // steps from one exchange to the next
    double outer_lr, outer_momentum;
    enum squeeze_kind squeeze; // how gradients are compressed
    double density;            // topk, demo: share of what is sent
    enum squeeze_scope scope;  // of which vector topk takes the largest
    int levels;                // int8: of an element's size
    int momentum_correction;   // topk: each worker has the momentum
    int squeeze_rank;          // power: of P and Q (squeeze/power.h)
    int feedback;              // bool: send later what was left out
    int squeeze_after;         // steps in which nothing is compressed yet
    int freeze;                // sign: then AdamW's second moment stays
    enum transport_kind transport;
    char iface[CONFIG_WORD];
    char lab[CONFIG_PATH]; // a shared object with a student's function
    struct sync_fault inject;
    int own_norm; // bool
    struct sync_mistake mistake;
};

// Whether the outer step of sync=outer is the mean of the workers' parameters
// (outer/outer.c).
static inline bool outer_averages(const struct sync_settings *s)
{
    return s->outer_lr == 1 && s->outer_momentum == 0;
}
