// result.h - what one finished run came to, read from its folder's files.

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
    METRIC_UTIL_TOTAL, // workers' compute shares added up, as the study did
    METRIC_UTIL_MEAN,
    METRIC_CPU_MEAN,
    METRIC_EXPOSED_S, // of a step
    METRIC_WAIT_S,
    METRIC_BYTES_TX,     // payload, of a worker and step
    METRIC_BYTES_LAW,    // the same by the law
    METRIC_BYTES_SERVER, // payload into a server that has a link of its own
    METRIC_LINK_LAW,     // time of an exchange on the links of net=, by the law
    METRIC_LAG,          // mean updates by others between pull and push
    METRIC_MEMORY,       // peak of any worker
    METRIC_RESTARTS,     // of the whole job, after failures
    METRIC_STEPS_LOST,   // done once more because of them
    METRIC_SECONDS_LOST, // on those, beside METRIC_SECONDS
    METRIC_SERVER_MEMORY, // peak of any server
    METRIC_BEST_VAL_LOSS,
    METRIC_TOKENS,
    METRIC_TAKEN,    // see samples.h
    METRIC_SWITCHES, // involuntary, a second, of a worker
    METRIC_GPU_UTIL, // as NVML says
    METRIC_GPU_MEMORY,
    METRIC_GPU_POWER,
    // of stages, the mean of all: result_stages.h
    METRIC_BUBBLE, // share of a step in which one waits for others
    METRIC_BUBBLE_LAW,
    METRIC_BUBBLE_TIMETABLE,
    METRIC_STEP_TIMETABLE,
    // beside other runs of the study (measure.c)
    METRIC_SPEEDUP,    // tokens/s over those of the baseline
    METRIC_SECONDS_TO, // the target loss, in steps alone
    METRIC_TOKENS_TO,
    METRICS
};

enum { RESULT_WORKERS = 4096, RESULT_KINDS = 13 }; // as many as workers= takes
enum { RESULT_PARTS = 7 };                         // of train/memory_plan.h
// What travels by no verb of a group goes to servers.
enum { RESULT_PUSH = GROUP_VERBS, RESULT_VERBS };

struct cJSON;

extern const char *const metric_names[METRICS]; // units in the names
extern const char *const kind_names[RESULT_KINDS];
extern const char *const part_names[RESULT_PARTS];

struct result {
    char cell[128];
    int repeat;
    char backend[32], wire[16], precision[16], hash[32], net[64];
    const struct backend *row; // NULL: this build has no such backend
    char consistency[32], transport[16], algorithm[16];
    int world, servers, global_batch, steps;
    int stages;             // of each replica of the model: mesh=ppN
    double lr_factor;       // of lr and min_lr: lr_scale=
    struct cJSON *settings; // all of them
    struct curve curve;
    bool oversubscribed;
    char pace[64];      // pace=: it slept instead of computing; "": it computed
    char mistakes[128]; // the settings that are wrong on purpose; "" for none
    bool held;          // servers update, and answer once all has come
    double value[METRICS];      // NaN: not measured
    double *util;               // compute share of each worker; NULL: as NaN
    double *comm;               // of each worker's GPU, in collectives
    double share[RESULT_KINDS]; // of the step, mean of workers: of the host, or
                                // of their GPUs, whether they compute
    // Payload out of a worker in a step, by verb, and the same by the law.
    double sent[RESULT_VERBS], law[RESULT_VERBS];
    // Bytes of worker 0's memory, predicted; of a mesh those of the rank with
    // the highest peak.
    double part[RESULT_PARTS];
};

// "all_reduce", .. "push".
const char *result_verb(int v);

// Read DIR into a zeroed *r. 0, or -1 after fail(). Free it either way.
int result_read(struct result *r, const char *dir);
void result_free(struct result *r);

// The settings that a run.json holds: all, with those that were derived; of
// runs from before that was told apart, those that had been written.
const struct cJSON *result_settings(const struct cJSON *run);

// One of them as text, "" where the run has none: the key's default where an
// old run.json does not say.
void result_setting(const struct result *r, const char *key, char *to,
                    size_t size);

// Median, least and most of n numbers (NaN left out; all NaN if none is left).
// Sorts them in place.
struct range {
    double median, least, most;
};
struct range range_of(double *v, int n);

#endif
