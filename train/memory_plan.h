// memory_plan.h - predicts how much of its host's memory a worker or a server
// needs, by part.
//
// The trainer prints the plan before step 1 and refuses to start if it does not
// fit. `lockstep predict` and `lockstep fit` print the plan of every backend.
// Below, P parameters, w workers, fp32; the sizes of shards are from
// Rajbhandari et al., "ZeRO", SC 2020:
//
//     bytes           params  gradients  AdamW   buffers
//     local, ring ..  4 P     4 P        8 P
//     sps, dps        4 P     4 P        0       (8 P with update=worker); with
//                                                save= 4 P more on worker 0
//     zero shard=1    4 P     4 P        8 P/w
//          shard=2    4 P     4 P/w      8 P/w   4 (2 U + E + F)
//          shard=3    4 P/w   4 P/w      8 P/w   8 (2 U + E + F)
//     dataparallel    4 P     4 P        8 P     receive buffers for pieces.
//                                                AdamW, buffers: worker 0 only
//     outer           4 P     4 P        8 P     4 P with a 16-bit wire or
//                                                outer_lr=, 8 P with
//                                                outer_momentum=
//     a server of s   4 P/s   4 P/s      8 P/s   up to 4 P/s of answers
//
// U is the number of parameters of one layer, E of the embeddings, F of ln_f.
// Two layers have a buffer: the one that computes and the one that is being
// gathered. The embeddings and ln_f also have one, because both ends of a step
// need them (zero/blocks.h).

#pragma once

#include "model/model.h"

struct backend;
struct sync_settings;

struct memory {           // all in bytes
    size_t params, grads; // with copies of either in other formats
    size_t optimizer;
    size_t buffers;     // of the exchange: blocks, casts, host copies, slices;
                        // and of saves
    size_t activations; // and scratch
    size_t process;     // code, libraries, threads, text, records
    // Other processes' vectors that it maps. The system counts them in this
    // process's peak, but they take no memory of its own.
    size_t mapped;
};

struct memory_job {
    const struct model_job *model;
    const struct sync_settings *settings; // after sync_derive()
    const struct backend *backend;
    int slots; // of the optimiser's state
    int rank, world;
    const char *transport; // in use: "shm", "tcp", ..; NULL: not known yet
    bool saves;            // checkpoints are written, or one is resumed
    bool apart;            // workers are on several hosts, or emulated ones
    bool copies;           // worker 0 copies what is saved (save_async=1)
};

// memory_worker writes the memory of one worker to *out. memory_server writes
// that of one server, all 0 if the backend has no servers.
void memory_worker(const struct memory_job *job, struct memory *out);
void memory_server(const struct memory_job *job, struct memory *out);

// Bytes that a member of a group in shared memory maps for its counters and
// messages, of `members` members.
size_t memory_shared(int members);

// The sum of all parts but `mapped`, in bytes.
size_t memory_sum(const struct memory *m);

// Writes "parameters 41.0 MiB, gradients ..", the parts that are not 0, to
// `text` (MEMORY_TEXT bytes) and returns it.
enum { MEMORY_TEXT = 256 };
char *memory_text(char text[MEMORY_TEXT], const struct memory *m);
