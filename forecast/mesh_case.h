// mesh_case.h - predicts a step of a model on a mesh of workers.
//
//     stage s      f = its layers' forward (+ head) + exchanges of its slices
//                  b = the same for backward
//     pipeline     the time of the timetable with these f and b, and the
//                  transfer time of each link
//     step         the slowest stage's pipeline + exposed part of the exchange
//                  among its replicas (forecast/forecast.h) + update
//                  + exchange of the tied embedding and the norm
//
// Rank r is on host r / slots. Neighbours along an axis that are on one host
// use the inner link. Other neighbours use the link between hosts. All ranks of
// a host that send at the same time share that link.

#pragma once

#include "config/config.h"
#include "forecast/forecast.h"
#include "model/model.h"
#include "pipeline/timetable.h"
#include "sync/law.h"
#include "train/memory_plan.h"

// The cluster, the model and its times, and one way to use the workers.
struct mesh_job {
    const struct run *run;
    // By mesh_settle(): who exchanges among the replicas, and the stages.
    const struct backend *backend;
    struct pipeline plan;     // its micro: micro-batches of a step
    int layers[STAGES_PARTS]; // of each stage; layers[0] is 0: evenly
    struct model_config model;
    int hosts, slots;         // slots: workers on each host
    struct link outer, inner; // between hosts; within a host
    // By mesh_links(): how many ranks of a host have their neighbour along an
    // axis, or the one in the next stage, on another host.
    int leaving[MESH_AXES], leaving_stage[PIPELINE_STAGES];
    // If not NULL: measured links, perhaps one for each backend, that all
    // replicas use instead.
    const struct links *links;
    // Seconds that one sequence takes in a layer, and in the head with the
    // embeddings. update: seconds for one parameter.
    double layer_forward, layer_backward, head_forward, head_backward, update;
    double disk; // with offload=disk: bytes a second of each worker's file
};

// Makes *r the settings of the job, from which its way follows. Sets keys in *r
// that the mesh or the backend do not use to their defaults, and threads=. 0,
// or -1 after fail().
int mesh_settle(struct mesh_job *job, struct run *r);

struct mesh_step {
    double seconds, bubble;   // of a step; idle share of the pipeline's time
    double compute_s;         // seconds that a worker computes, the mean
    double pipeline_s;        // seconds of the pipeline's timetable
    double tied_s;            // seconds for the tied embedding and the norm
    double bytes[MESH_AXES];  // sent by the busiest rank, by axis
    struct memory memory;     // of the rank that needs most
    struct memory server;     // of one of the backend's servers; all 0: none
    struct forecast exchange; // of the slowest stage's replicas
    int stages, parts;
    int cut[STAGES_PARTS]; // the layers of each part; 0 parts: evenly
    double forward[PIPELINE_STAGES], backward[PIPELINE_STAGES]; // seconds
    struct memory of_stage[PIPELINE_STAGES];
    int layers[PIPELINE_STAGES];
    double params[PIPELINE_STAGES]; // of a slice
    int joins[2][PIPELINE_STAGES];  // of a micro-batch: in forward, in backward
    bool held;                      // servers or an owner update
};

// mesh_measured sets the times of a layer and of the head from those of forward
// and of backward of one sequence, in seconds, through `layers` layers and the
// head. It divides them by FLOP: a token takes 24 C C + 4 T C in a layer and
// 2 V C in the head. Backward takes twice as many; with recompute=1 it also
// repeats a layer's forward. mesh_divide sets them from the sum of both times,
// through the whole model.
void mesh_measured(struct mesh_job *job, int layers, double forward,
                   double backward);
void mesh_divide(struct mesh_job *job, double seconds);

// Predicts a step. If it certainly takes more than `enough` seconds, finds only
// a lower bound of the seconds. 0, or -1 after fail().
int mesh_step(const struct mesh_job *job, double enough, struct mesh_step *out);

// Divides the layers so that the slowest stage is as fast as possible: sets
// job->layers to the number of layers of each stage. (The last stage also has
// the head.) Sets job->layers[0] to 0 if even stages are as fast, and with
// chunks.
void mesh_cut(struct mesh_job *job);
