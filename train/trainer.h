// trainer.h - one worker: everything it holds, and the three things done to it.

#ifndef TRAIN_TRAINER_H
#define TRAIN_TRAINER_H

#include "config/config.h"
#include "model/model.h"
#include "optim/lr_schedule.h"
#include "optim/optim.h"
#include "pipeline/timetable.h"
#include "sync/derive.h"
#include "sync/sync.h"
#include "train/memory_plan.h"
#include "train/observe.h"

struct cluster;
struct data;
struct device;
struct rendezvous_server;
struct saver;
struct slices;
struct stages;
struct steps;

enum { TRAIN_MAX_BUCKETS = 4096 };

struct trainer {
    struct run run;
    struct run asked;           // by the user, without what the launcher added
    bool launched;              // by lockstep, which watches
    int restarts;               // how often it had to start this job again
    struct model_config config; // of what is trained here: a part, or all of
    struct model_config whole;  // the model
    struct optim_config optim;
    struct schedule schedule;
    struct loss_scale scale;
    bool scaling; // the loss is scaled: an overflow skips a step, no more

    struct rendezvous_server
        *rendezvous;         // rank 0's, where no server has the rendezvous
    struct cluster *cluster; // all processes of the job
    // Those that agree on these parameters; the stages of this replica, and the
    // slices of this stage: all, and none, where the model is whole.
    struct cluster *members, *line, *row;
    int replica, replicas; // of the model: each has micro-batches of its own
    struct pipeline plan;  // of a step; one stage: accumulation of gradients
    int stage;
    struct stages *stages;       // NULL with one
    struct slices *slices;       // likewise
    struct norm_parts *parts;    // NULL where the model is whole
    double loss;                 // of the step, so far
    uint64_t bubble_ns, join_ns; // waited for other stages, slices, in all
    struct device *dev;
    struct data *data;
    struct sync_settings settings; // of the backend, nothing left to derive
    struct sync_share share;       // what it keeps of the model's vectors
    struct model_lender lender;    // of what it lends
    struct model *model;
    struct sync *sync;
    struct bucket *buckets;
    float *params, *grads; // on the device; NULL where the backend lends them
    float *host;           // params as files are read into: itself on the CPU
    int32_t *x, *y;        // a micro-batch a room: (B, T) each; of all ranks on
                           // a worker 0 that hands them out
    bool scatters;         // worker 0 reads all batches and hands them out
    double mean_loss;      // of the last step, where worker 0 gathers losses
    bool ready_failed;     // sync_ready(), in the middle of backward
    bool profiling;        // profile=: these steps are recorded

    struct saver *saver; // worker 0's copy of what is saved, with save_async=1
    struct steps *rows;
    int lock; // worker 0's, on OUT, where no launcher has it: 1 + a descriptor
    struct observe observe;
    char name[CONFIG_WORD];   // of the backend
    int step;                 // steps done: where the next one begins counting
    int updates;              // of them, those that were not skipped
    uint64_t position;        // in the data, in steps of this batch and world
    double time_before;       // s that earlier parts of the run took
    struct memory memory;     // of this process, predicted
    struct group_stats moved; // in steps, since this part of the run began
    uint64_t axis_out[MESH_AXES]; // likewise: payload out, by axis
};

// Words of the user; then, behind "--", those that the launcher added for this
// worker. Read the settings, the data and the model's size; find the other
// workers; say what is wrong before anything is written. 0, or -1 after fail().
int trainer_open(struct trainer *t, int nwords, char *const *words);

// What its model is asked to be; its vectors may not be there yet.
struct model_job trainer_model_job(const struct trainer *t);

// Initialise or resume, then train to the last step. 0, or -1 after fail().
int trainer_run(struct trainer *t, int argc, char *const *argv);

void trainer_close(struct trainer *t);

#endif
