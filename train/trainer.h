// trainer.h - one worker of a job: open, run, close.

#pragma once

#include "config/config.h"
#include "device/device.h"
#include "model/model.h"
#include "optim/lr_schedule.h"
#include "optim/optim.h"
#include "pipeline/timetable.h"
#include "sync/derive.h"
#include "sync/sync.h"
#include "train/memory_plan.h"
#include "train/observe.h"

struct backend;
struct cluster;
struct data;
struct device;
struct rendezvous_server;
struct saver;
struct sequences;
struct slices;
struct stages;
struct steps;

struct trainer {
    struct run run;
    struct run asked; // settings by the user, without the launcher's
    const struct backend *backend; // of sync=
    bool launched;                 // started by lockstep, which watches
    int restarts;               // how often the launcher has restarted the job;
                                // 1 if it was started again with resume=auto
    struct model_config config; // this worker's part of the model, or all of it
    struct model_config whole;  // the whole model
    struct optim_config optim;
    struct schedule schedule;
    struct loss_scale scale;
    bool scaling; // the loss is scaled: an overflow only skips a step

    struct rendezvous_server
        *rendezvous;         // rank 0's, if no server serves the rendezvous
    struct cluster *cluster; // all processes of the job
    // The workers with the same parameters; the stages of this replica; the
    // slices of this stage; those that divide its sequences and exchange keys;
    // those that exchange heads (mesh=upN). With a whole model and whole
    // sequences: all workers, and NULL.
    struct cluster *members, *line, *row, *sharers, *group;
    int replica, replicas; // each replica has micro-batches of its own
    struct pipeline plan;  // of a step; one stage: gradient accumulation
    int stage;
    struct stages *stages;       // NULL with one stage
    struct slices *slices;       // NULL with one slice
    struct sequences *sequences; // NULL if sequences are whole
    struct norm_parts *parts;    // NULL if the model is whole
    double loss;                 // of the step, so far
    double val_loss;             // of the last evaluation
    uint64_t bubble_ns;          // total wait for other stages that has no span
    struct device_event computed; // of exchange.c
    struct device *dev;
    struct data *data;
    struct sync_settings settings; // of the backend, after sync_derive()
    struct sync_share share;       // how many elements this worker holds
    struct model_lender lender;    // lends the model blocks of shards
    struct model *model;
    struct sync *sync;
    struct bucket *buckets;
    float *params, *grads; // on the device; NULL if the backend lends them
    float *host;           // params in host memory: on the CPU, params itself
    int32_t *x, *y;    // (B, T) tokens for each activation slot; if worker 0
                       // scatters batches, it has the tokens of all ranks
    bool scatters;     // worker 0 reads all batches and sends them out
    double mean_loss;  // of the last step, if worker 0 gathers losses
    bool ready_failed; // sync_ready() has failed during backward
    bool profiling;    // profile=: a profiler may record now

    struct saver *saver; // worker 0's copy of what is saved, with save_async=1
    struct steps *rows;
    int lock; // worker 0: 1 + the descriptor of its lock on out=; 0: it has
              // none, since the launcher holds the lock
    struct observe observe;
    int step;                 // steps done so far
    int updates;              // steps that were not skipped
    int skips;                // steps in a row that were
    int saved;                // the last step that this worker has saved
    uint64_t tokens;          // of all gradients that entered an update
    uint64_t position;        // in the data, in steps of this batch and world
    double time_before;       // seconds that earlier parts of the run took
    struct memory memory;     // of this process, predicted
    struct group_stats moved; // in the steps of this part of the run
    uint64_t axis_out[MESH_AXES]; // bytes sent in those steps, by axis
};

// words: the user's settings; then, after "--", those that the launcher added
// for this worker. Reads the settings, the data and the model's size, and finds
// the other workers. Reports every error before anything is written. Returns 0,
// or -1 after fail().
int trainer_open(struct trainer *t, int nwords, char *const *words);

// The job of this worker's model. Its vectors may not be allocated yet.
struct model_job trainer_model_job(const struct trainer *t);

// The factor that makes the sum of all gradients of a step their mean.
float trainer_grad_scale(const struct trainer *t);

// Initialise or resume, then train to the last step. 0, or -1 after fail().
int trainer_run(struct trainer *t, int argc, char *const *argv);

// Initialise or resume, then compute the validation loss; with eval=0 *loss is
// NaN. 0, or -1 after fail().
int trainer_evaluate(struct trainer *t, double *loss);

// Frees everything. Accepts a trainer that is not fully open.
void trainer_close(struct trainer *t);
