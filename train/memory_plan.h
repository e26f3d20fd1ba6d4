// memory_plan.h - what a worker or a server needs of its host's memory, by
// part, known before it needs it.
//
// The trainer refuses what does not fit by this and prints it before step 1;
// `lockstep predict` and `lockstep fit` print it of every way. P parameters, w
// workers, fp32; what shards leave, from Rajbhandari et al., "ZeRO", SC 2020:
//
//     bytes           params  gradients  AdamW   buffers
//     local, ring ..  4 P     4 P        8 P
//     sps, dps        4 P     4 P        0       (8 P with update=worker)
//     zero shard=1    4 P     4 P        8 P/w
//          shard=2    4 P     4 P/w      8 P/w   4 (2 U + E + F)
//          shard=3    4 P/w   4 P/w      8 P/w   8 (2 U + E + F)
//     dataparallel    4 P     4 P        8 P     on worker 0, with room for
//                                                others' pieces; elsewhere 0
//     outer          4 P     4 P        8 P     4 P with a 16-bit wire, 8 P
//                                               with outer_rule=nesterov
//     a server of s   4 P/s   4 P/s      8 P/s   up to 4 P/s of answers
//
// U parameters are one layer's, E the embeddings', F those of ln_f: two layers
// have a buffer, the one at work and the one that is gathered, and so have the
// embeddings and ln_f, which both ends of a step need (zero/blocks.h).

#ifndef TRAIN_MEMORY_PLAN_H
#define TRAIN_MEMORY_PLAN_H

#include "model/model.h"

struct backend;
struct optim_config;
struct sync_settings;

struct memory {
    size_t params, grads; // with copies of either in other formats
    size_t optimizer;
    size_t buffers;     // of the exchange: blocks, casts, host copies, slices;
                        // a copy of what is saved
    size_t activations; // and scratch
    size_t process;     // code, libraries, threads, text, records
    // Others' vectors that it maps: counted by the system in a process's peak,
    // they take no memory of its own.
    size_t mapped;
};

struct memory_job {
    const struct model_job *model;
    const struct sync_settings *settings; // nothing left to derive
    const struct backend *backend;
    const struct optim_config *optim;
    int rank, world;
    const char *transport; // that was found: "shm", "tcp" ..; NULL: not yet
    bool copies;           // worker 0 copies what is saved (save_async=1)
};

// Of a worker; of one of its servers, all 0 where there are none.
void memory_worker(const struct memory_job *job, struct memory *out);
void memory_server(const struct memory_job *job, struct memory *out);

// All parts, but what is mapped.
size_t memory_sum(const struct memory *m);

// "parameters 41.0 MiB, gradients ..": the parts that are not 0. `text` is
// MEMORY_TEXT bytes, and is returned.
enum { MEMORY_TEXT = 256 };
char *memory_text(char text[MEMORY_TEXT], const struct memory *m);

#endif
