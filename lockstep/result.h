// result.h - reads the results of one finished run from its folder.

#ifndef LOCKSTEP_RESULT_H
#define LOCKSTEP_RESULT_H

#include "group/group.h"
#include "lockstep/loss_curve.h"

#include <stdbool.h>
#include <stddef.h>

// Rows of the tables, in the order of metric_names.
enum metric {
    METRIC_TOKENS_PER_S, // of the whole job, by the median step
    METRIC_STEP_S,
    METRIC_SECONDS,
    METRIC_TRAIN_LOSS,
    METRIC_VAL_LOSS,
    METRIC_UTIL_TOTAL, // sum of the workers' compute shares
    METRIC_UTIL_MEAN,
    METRIC_CPU_MEAN,
    METRIC_EXPOSED_S, // exposed communication of a step
    METRIC_WAIT_S,
    METRIC_BYTES_TX,      // payload that a worker sends in a step
    METRIC_BYTES_LAW,     // the same by the law
    METRIC_BYTES_SERVER,  // payload into a server that has a link of its own
    METRIC_LINK_LAW,      // seconds of an exchange on net= links, by the law
    METRIC_LAG,           // mean updates by others that the parameters lack
    METRIC_MEMORY,        // peak of any worker
    METRIC_RESTARTS,      // of the whole job, after failures
    METRIC_STEPS_LOST,    // steps that were repeated after restarts
    METRIC_SECONDS_LOST,  // for these; METRIC_SECONDS does not include them
    METRIC_SERVER_MEMORY, // peak of any server
    METRIC_BEST_VAL_LOSS,
    METRIC_TOKENS,
    METRIC_TAKEN,    // see samples.h
    METRIC_SWITCHES, // involuntary context switches a second of a worker
    METRIC_GPU_UTIL, // as NVML reports it
    METRIC_GPU_MEMORY,
    METRIC_GPU_POWER,
    // Means over the stages of a pipeline (result_stages.h).
    METRIC_BUBBLE, // share of a step in which a stage waits for other stages
    METRIC_BUBBLE_LAW,
    METRIC_BUBBLE_TIMETABLE,
    METRIC_STEP_TIMETABLE,
    // Computed from several runs (measure.c).
    METRIC_SPEEDUP,    // tokens/s divided by those of the baseline
    METRIC_SECONDS_TO, // seconds of steps until the target loss
    METRIC_TOKENS_TO,
    METRICS
};

// The limit of workers=, the kinds of time in breakdown.csv, and the parts of
// memory in train/memory_plan.h.
enum { RESULT_WORKERS = 4096, RESULT_KINDS = 13 };
enum { RESULT_PARTS = 7 };
// The verbs of a group, and one more for gradients pushed to servers.
enum { RESULT_PUSH = GROUP_VERBS, RESULT_VERBS };

struct cJSON;

extern const char *const metric_names[METRICS]; // with their units
extern const char *const kind_names[RESULT_KINDS];
extern const char *const part_names[RESULT_PARTS];

struct result {
    char cell[128];
    int repeat;
    char backend[32], wire[16], precision[16], hash[32], net[64];
    const struct backend *row; // NULL: this build has no such backend
    char consistency[32], transport[16], algorithm[16];
    int world, servers, global_batch, steps;
    int stages;             // of each replica of the model (mesh=ppN)
    double lr_factor;       // by which lr_scale= multiplies lr and min_lr
    struct cJSON *settings; // all settings of the run
    struct curve curve;
    bool oversubscribed;
    char pace[64];      // pace=: it slept instead of computing; "": it computed
    char mistakes[128]; // the settings that are wrong on purpose; "" for none
    bool held;          // servers, or worker 0 as the owner, update, and reply
                        // only when all gradients have arrived
    double value[METRICS]; // NaN: not measured
    double *util;          // (world) compute share; NULL: not measured
    double *comm;          // (world) share of time of its GPU in collectives
    double share[RESULT_KINDS]; // of a step, mean of the workers: shares of the
                                // host's time, or of GPU time if GPUs compute
    // Payload that a worker sends in a step, by verb: measured, by the law.
    double sent[RESULT_VERBS], law[RESULT_VERBS];
    // Predicted bytes of memory, by part: of worker 0, or of the rank with the
    // highest peak in a mesh.
    double part[RESULT_PARTS];
};

// Returns the name of a verb: "all_reduce", .. "push".
const char *result_verb(int v);

// Reads DIR into a zeroed *r. 0, or -1 after fail(). The caller frees *r in
// both cases.
int result_read(struct result *r, const char *dir);
void result_free(struct result *r);

// Returns the settings in a run.json, with derived ones; it points into `run`.
// Old files have one object for asked and derived settings together: then it
// returns that object.
const struct cJSON *result_settings(const struct cJSON *run);

// Writes one setting as text. If an old run.json does not have the key, writes
// its default; "" if there is no such key.
void result_setting(const struct result *r, const char *key, char *to,
                    size_t size);

struct range {
    double median, least, most;
};

// Returns the median, least and most of n numbers. NaNs do not count; if all
// are NaN, so are the results. Sorts v.
struct range range_of(double *v, int n);

#endif
