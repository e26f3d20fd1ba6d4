// mesh_case.h - a step of a model on a mesh of workers, by its laws.
//
//     stage s      f = layers f1 (+ head) + joins of its forward
//                  b likewise; each stage has its own
//     pipeline     the timetable run with these f and b and each link's hop
//     step         most of all stages: that, what replicas' exchange shows
//                  beside the last backward (lockstep/forecast.h), the update
//     + tied table, norm
//
// Ranks lie on the hosts in blocks: rank r on host r / slots. Where neighbours
// along an axis share a host their messages take the link inside, else the one
// between hosts, which all ranks of a host that send at the same time share.

#ifndef LOCKSTEP_MESH_CASE_H
#define LOCKSTEP_MESH_CASE_H

#include "config/config.h"
#include "model/model.h"
#include "pipeline/timetable.h"
#include "sync/law.h"
#include "train/memory_plan.h"

// What is given.
struct mesh_job {
    const struct run *run; // model, precision, wire, optimizer, recompute
    struct model_config model;
    int hosts, slots; // workers of a host
    struct link outer, inner;
    // Seconds of one sequence: a layer, and the head with the embeddings; of
    // the update of one parameter.
    double layer_forward, layer_backward, head_forward, head_backward, update;
};

// One way of using the workers.
struct mesh_case {
    struct mesh mesh;
    const struct backend *backend; // among replicas
    int shard;                     // of one with shards
    int batch;                     // sequences of a micro-batch
    struct pipeline plan;          // micro: micro-batches of a step
    int layers[STAGES_PARTS];      // of each stage; the first 0: evenly
};

struct mesh_step {
    double seconds, bubble;    // of a step; share of the pipeline's time
    double pipeline_s, tied_s; // of it: the timetable; what its ends and all
                               // stages exchange behind it
    double bytes[MESH_AXES];   // out of the busiest rank, by axis
    struct memory memory;      // of the rank that needs most
    int stage;                 // which stage that is
    double forward[PIPELINE_STAGES], backward[PIPELINE_STAGES];
    struct memory of_stage[PIPELINE_STAGES];
};

// The times of a layer and of the head, where a sequence takes so many seconds
// through `layers` and the head, forward and backward: divided by FLOP, of a
// token 24 C C + 4 T C in a layer, 2 V C in the head; backward takes twice as
// many, and with recompute=1 a layer's forward again.
void mesh_divide(struct mesh_job *job, int layers, double seconds);

// 0, or -1 after fail().
int mesh_step(const struct mesh_job *job, const struct mesh_case *c,
              struct mesh_step *out);

// The layers of each stage that make the slowest stage as fast as it can be:
// the last one also has the head. Into c->layers; 0 where an even cut is no
// slower, and with chunks.
void mesh_cut(const struct mesh_job *job, struct mesh_case *c);

// The link between neighbours along an axis, as it is when all ranks use it at
// the same time: ahead of stage `at` where that is >= 0, else the slowest.
struct link mesh_link(const struct mesh_job *job, const struct mesh *m,
                      enum mesh_axis axis, int at);

#endif
