// config.h - every setting of a run: one struct, one table of keys.
//
// A run is described by an INI file and key=value words; the last word wins.
// The table (keys.c) gives each key its type, range, default, unit and help
// line; parsing, --help, run.json and the handshake text are loops over it.

#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include "config/mesh.h"
#include "config/settings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct backend;

enum { CONFIG_KEYS = 128 }; // at most so many

enum precision { PRECISION_FP32, PRECISION_BF16, PRECISION_FP16 };
enum trace { TRACE_OFF, TRACE_ON, TRACE_HTA };
enum lr_scale { LR_SCALE_NONE, LR_SCALE_SQRT, LR_SCALE_LINEAR };

// straggler=RANK:FACTOR: this worker takes so many times as long. A factor of
// 0: nobody does.
struct straggler {
    int rank;
    double factor;
};

// mistake_own_steps=RANK:STEPS: this worker takes so many steps and no more. 0:
// nobody does.
struct own_steps {
    int rank, steps;
};

// pace=F,B: a forward and a backward take so long, asleep. Not given: they
// compute.
struct pace {
    bool given;
    double forward_ms, backward_ms;
};

// profile=FROM:COUNT: a profiler records so many steps from FROM on. 0: none.
struct profile {
    int from, count;
};

// Numbers left at 0 (layers, heads, channels, context, vocab_size) come from
// the preset or the data.
struct run {
    // model
    char model[CONFIG_WORD];
    int layers, heads, channels, context, vocab_size;
    double dropout;
    char init[CONFIG_PATH]; // "random", or a checkpoint file

    // data
    char data[CONFIG_PATH], vocab[CONFIG_PATH];
    int symbols; // enum data_symbols
    double val_fraction;

    // training
    int batch, accum, steps;
    int global_batch;        // if > 0 it sets batch or accum
    double epochs;           // if > 0 it sets steps
    int optimizer, schedule; // enum optim_kind, schedule_kind
    double lr, min_lr;
    int lr_scale;   // enum lr_scale: of both, over base_batch
    int base_batch; // sequences of a step
    int warmup;
    double beta1, beta2, eps, weight_decay, momentum, clip;
    int precision;     // enum precision
    double loss_scale; // 0: dynamic; else this constant
    int64_t seed;
    int threads;   // a worker; 0: this worker's share of the cores
    int recompute; // bool: layers' activations are computed twice, not kept
    int tf32;      // bool: cuda, fp32: products may round to TF32
    int tune;      // cuda: algorithms timed a shape of product; 0: none

    // what it leaves behind
    char out[CONFIG_PATH];
    char resume[CONFIG_PATH]; // "", "auto", or a checkpoint folder
    int log, eval, eval_batches, save, keep, verify; // steps; 0: never
    int save_async;  // bool: from a copy, while steps go on
    int trace;       // enum trace
    double samples;  // of utilisation, a second
    int tensorboard; // bool
    struct profile profile;
    int kernels; // bool: of the GPU, in the trace

    // who trains together
    char sync[CONFIG_WORD], device[CONFIG_WORD], cluster[CONFIG_WORD];
    int workers;      // lockstep starts so many
    struct mesh mesh; // of the workers, if it was asked for
    int pipeline;     // of its stages: enum pipeline_kind
    int chunks, ahead;
    struct stage_layers stages;
    int rank, world; // a worker started by hand; -1, 0: from the launcher
    char rendezvous[CONFIG_PATH], hosts[CONFIG_PATH], curve[CONFIG_PATH];
    struct straggler straggler;
    struct pace pace;
    struct own_steps mistake_own_steps;
    char net[CONFIG_WORD]; // RATE[,hosts=N]: emulated links; "" for none
    double timeout;        // s, of every wait
    int restarts;          // of the whole job after a failure, at most

    struct sync_settings settings; // of the backend, as they were asked for
    // By row of keys.c: somebody set it; by way of an earlier run's run.json.
    bool asked[CONFIG_KEYS], inherited[CONFIG_KEYS];
};

// Every key at its default.
void config_defaults(struct run *r);

// Set one key from text. 0, or -1 after fail(): unknown key (names the nearest
// known one), not a number, out of range (names the range).
int config_set(struct run *r, const char *key, const char *value);

// Apply words in order: "key=value", or the path of an INI file or of a
// run.json (a word without '='). 0, or -1 after fail().
int config_parse(struct run *r, int nwords, char *const *words);

// The same, where resume= names a run or a checkpoint of one: that run's
// settings first, words after them. What an earlier run asked of its backend,
// and this one's cannot use, is dropped. 0, or -1 after fail().
int config_read(struct run *r, int nwords, char *const *words);

// The keys of the group "mistakes" that are not at their default, from row *i
// on: NULL behind the last; else "key=value" into `text`, and the row's help.
// *i is where to go on.
const char *config_mistake(const struct run *r, int *i, char text[CONFIG_PATH]);

// 0; -1 after fail() where out= holds a run that this one would overwrite: it
// does not resume, or that run ended without a checkpoint. A run that was
// killed before its first checkpoint begins anew with resume=auto: a scheduler
// may start the same command again.
int config_check_out(const struct run *r);

// Log every key that the run which is resumed had otherwise. 0, or -1 after
// fail().
int config_say_changes(const struct run *r);

// What only makes sense together (min_lr <= lr, keys that the backend reads,
// ..).
int config_check(const struct run *r);

// The format of precision=.
enum dtype config_format(const struct run *r);

// -1 after fail() that names a key of [backend] which somebody asked for and
// which `b` does not read, or a value that it cannot take.
int config_check_backend(const struct run *r, const struct backend *b);

// What only makes sense with so many workers. 0, or -1 after fail().
int config_check_world(const struct run *r, int world);

// Every key with unit, default, allowed values and one line of help.
void config_help(FILE *f);

// ---- batch.c: what depends on how many workers hold batches of their own.

// Where global_batch= was asked for: accum that makes it of batch=, or, where
// nobody asked for that, batch. 0, or -1 after fail() where none does.
int config_settle_batch(struct run *r, int replicas);

// What lr_scale= multiplies lr and min_lr by, for a step of `batch` sequences:
// 1, (batch / base)^(1/2) or batch / base.
double config_lr_factor(enum lr_scale scale, double batch, double base);

// Call fn with every key and its value as text, in table order; of a backend's
// keys only with those that this one reads. `shared` is true for keys that all
// workers must agree on.
typedef void config_visit(void *ctx, const char *key, const char *value,
                          bool is_number, bool shared);
void config_each(const struct run *r, config_visit *fn, void *ctx);

// Only with keys that were asked for; with `again` only with those that repeat
// the run: not its rank, folder, endpoints or keys.
void config_each_asked(const struct run *r, bool again, config_visit *fn,
                       void *ctx);

// Whether a key was asked for.
bool config_asked(const struct run *r, const char *key);

// A backend's keys alone, at their defaults; and one of them from text. 0, or
// -1 after fail().
void settings_defaults(struct sync_settings *s);
int settings_set(struct sync_settings *s, const char *key, const char *value);

// -1 after fail() where the settings of servers do not go together.
int settings_check(const struct sync_settings *s);

// Lines "key=value" that all workers must agree on, for cluster_check_same():
// any one, by a format as of printf(); all of a run; all of a backend's
// settings.
struct config_lines {
    char text[1 << 14];
    size_t n; // bytes used
};
void config_line(struct config_lines *l, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void config_add_run(struct config_lines *l, const struct run *r);
void config_add_settings(struct config_lines *l, const struct sync_settings *s);

#endif
