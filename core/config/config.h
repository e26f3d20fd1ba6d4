// config.h - every setting of a run: one struct, one table of keys.
//
// An INI file and key=value words describe a run. The last word wins. The table
// (keys.c) gives each key its type, range, default, unit and help line.
// Parsing, --help, run.json and the text that workers compare are loops over
// it.

#pragma once

#include "config/mesh.h"
#include "config/settings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct backend;
struct key; // config/keys.h

enum { CONFIG_KEYS = 128 }; // the most rows of the table

enum precision {
    PRECISION_FP32,
    PRECISION_BF16,
    PRECISION_FP16,
    PRECISION_TF32 // fp32, whose products may round their factors to TF32
};
enum trace { TRACE_OFF, TRACE_ON, TRACE_HTA };
enum attention_by { ATTENTION_OURS, ATTENTION_CUDNN };
// How workers that divide sequences get each other's keys; the first two are
// those of enum model_over.
enum attention_over { ATTENTION_GATHER, ATTENTION_RING, ATTENTION_HEADS };
enum lr_scale { LR_SCALE_NONE, LR_SCALE_SQRT, LR_SCALE_LINEAR };

// straggler=RANK:FACTOR: this worker takes `factor` times as long. A factor of
// 0: no worker does.
struct straggler {
    int rank;
    double factor;
};

// pace=F,B: a forward and a backward sleep for these times instead of
// computing. Not given: they compute.
struct pace {
    bool given;
    double forward_ms, backward_ms;
};

// profile=FROM:COUNT: a profiler records COUNT steps, from step FROM on. A
// count of 0: it records none.
struct profile {
    int from, count;
};

// layers, heads, channels, context and vocab_size of 0 come from the preset or
// the data.
struct run {
    // model
    char model[CONFIG_WORD];
    int layers, heads, channels, context, vocab_size;
    double dropout;
    char init[CONFIG_PATH]; // "random", or a checkpoint file

    // data
    char data[CONFIG_PATH], vocab[CONFIG_PATH];
    double val_fraction;
    int order; // enum data_order

    // training
    int batch, accum, steps;
    int global_batch;        // if > 0 it sets batch or accum
    double epochs;           // if > 0 it sets steps
    int optimizer, schedule; // enum optim_kind, schedule_kind
    double lr, min_lr;
    int lr_scale;   // enum lr_scale: how lr and min_lr grow with batch
    int base_batch; // sequences of a step for which lr is right
    int warmup;
    double beta1, beta2, eps, weight_decay, momentum, clip;
    int precision;     // enum precision
    double loss_scale; // 0: dynamic; else this constant
    int64_t seed;
    int threads;   // of a worker; 0: its share of the cores
    int recompute; // bool: layers' activations are computed twice, not kept
    int tune;      // cuda: algorithms timed for each product's shape; 0: none
    int attention; // cuda: enum attention_by

    // what it writes
    char out[CONFIG_PATH];
    char resume[CONFIG_PATH]; // "", "auto", or folder of a run or checkpoint
    // log, eval, save, verify: from one time to the next, in steps; 0: never.
    // eval_batches, keep: how many; 0: all.
    int log, eval, eval_batches, save, keep, verify;
    int save_async;  // bool: checkpoints from a copy, while steps go on
    int trace;       // enum trace
    double samples;  // of utilisation, per second
    int tensorboard; // bool
    struct profile profile;
    int kernels; // bool: record the GPU's kernels in the trace

    // which processes train together, and how
    char sync[CONFIG_WORD], device[CONFIG_WORD];
    int workers;      // that the program `lockstep` starts
    struct mesh mesh; // of the workers; n = 0: not given
    int pipeline;     // enum pipeline_kind: the schedule of the mesh's stages
    int chunks, ahead;
    struct stage_layers stages;
    int tp_sequence;    // 1, 2: slices divide the tokens between the products;
                        // 2: layers keep what two products read of all tokens
    int tp_wire;        // enum dtype, of the sums between slices
    int attention_over; // enum attention_over: of a mesh with cp
    int rank, world;    // of a worker started by hand; -1, 0: from the launcher
    char rendezvous[CONFIG_PATH], hosts[CONFIG_PATH], curve[CONFIG_PATH];
    bool had_hosts; // the run whose run.json was read had hosts=
    struct straggler straggler;
    struct pace pace;
    char net[CONFIG_WORD]; // [?]RATE[,hosts=N]: emulated links; "" for none
    double timeout;        // s, of every wait
    int restarts;          // at most, after failures; 0: none

    struct sync_settings settings; // of the backend, as the user gave them
    // By row of keys.c. asked: a word or a file has set the key. inherited: the
    // last to set it was the run.json of an earlier run.
    bool asked[CONFIG_KEYS], inherited[CONFIG_KEYS];
};

// Sets every key to its default.
void config_defaults(struct run *r);

// Sets one key from text. 0, or -1 after fail(): unknown key (names the nearest
// known one), not a number, out of range (names the range).
int config_set(struct run *r, const char *key, const char *value);

// Applies an INI file or a run.json. 0, or -1 after fail().
int config_file(struct run *r, const char *path);

// The same with the n bytes at `text`. Errors begin with `name`, those of an
// INI text with the line, too. config_json() applies "asked", or "settings" if
// an earlier version wrote the run.json without "asked". It leaves out settings
// that belong to one start of a run (key.once, and endpoints).
int config_ini(struct run *r, const char *name, const char *text, size_t n);
int config_json(struct run *r, const char *name, const char *text, size_t n);

// Applies words in order: "key=value", or the path of an INI file or of a
// run.json (a word without '='). 0, or -1 after fail().
int config_parse(struct run *r, int nwords, char *const *words);

// The same, but if resume= names a run or its checkpoint, that run's settings
// come first, then the words. Settings for the earlier run's backend that this
// run's backend cannot use are dropped. 0, or -1 after fail().
int config_read(struct run *r, int nwords, char *const *words);

// Writes mistake=WORD to `text`. Returns what that does, a sentence without its
// end, or NULL if the run makes no mistake on purpose.
const char *config_mistake(const struct run *r, char text[CONFIG_PATH]);

// Whether backend `b` can make the run's mistake. same_seed: several workers
// draw, each for itself. two_updates, local_clip: each worker updates with the
// sum of all gradients in every step.
bool config_takes_mistake(const struct run *r, const struct backend *b);

// Checks that this run does not overwrite a run that out= holds. Returns -1
// after fail() if out= holds one and resume= is not given, or if resume=auto
// and that run ended and left no checkpoint; else 0. With resume=auto, a run
// that was killed before its first checkpoint begins again at step 1, since a
// scheduler may start the same command again.
int config_check_out(const struct run *r);

// Checks that the user has said hosts= again, or that there is none, if the
// earlier run had hosts=. 0, or -1 after fail().
int config_check_hosts(const struct run *r);

// Logs every key whose value differs from that in the run that is resumed. 0,
// or -1 after fail().
int config_say_changes(const struct run *r);

// The state of the optimiser cannot be read from the checkpoint, and
// fail_message() says why. If the run that is resumed had another optimizer= or
// momentum=, adds that. Returns -1.
int config_fail_state(const struct run *r);

// Checks settings that depend on each other (min_lr <= lr, keys that the
// backend reads, ..). 0, or -1 after fail().
int config_check(const struct run *r);

// The format of precision=.
enum dtype config_format(const struct run *r);

// Checks that `b` reads every key of [backend] that the user gave, and can use
// the value of transport=. If `b` has servers, calls settings_check(), too. 0,
// or -1 after fail().
int config_check_backend(const struct run *r, const struct backend *b);

// Checks mesh=, and the settings of its parts. config_check_tokens() refuses
// those of tokens that workers divide if the mesh divides none. Both return 0,
// or -1 after fail().
int config_check_mesh(const struct run *r, const struct backend *b);
int config_check_tokens(const struct run *r);

// How many of the workers that divide sequences exchange heads with each other,
// with `over` of enum attention_over; 1: none.
int config_exchange_heads(const struct mesh *m, int over);

// Checks squeeze=, and the settings that go with it. 0, or -1 after fail().
int config_check_squeeze(const struct run *r);

// The keys of how whole gradients are summed, which squeeze= refuses; then
// NULL.
extern const char *const config_sum_keys[];

// Whether squeeze= takes a key. True for keys that no compressor has.
bool config_squeeze_takes(const struct run *r, const char *key);

// Whether each worker has the momentum of the optimiser, which then has none.
bool config_moves_momentum(const struct run *r);

// Whether workers listen for connections of others, so that iface= says where.
// Those of a library do so only between stages and slices, which are ours.
bool config_listens(const struct run *r);

// Checks settings that depend on the number of workers. 0, or -1 after fail().
int config_check_world(const struct run *r, int world);

// Writes every key with its default, allowed values, unit and help, and the
// names of the backends.
void config_help(FILE *f);

// ---- batch.c: what follows from the number of replicas

// If global_batch= is given, makes batch * accum * replicas equal to it: sets
// batch if batch= is not given, else accum if accum= is not given. 0, or -1
// after fail() if the three cannot give global_batch.
int config_settle_batch(struct run *r, int replicas);

// The factor by which lr_scale= multiplies lr and min_lr, for a step of `batch`
// sequences: 1, (batch / base)^(1/2) or batch / base.
double config_lr_factor(enum lr_scale scale, double batch, double base);

// Calls fn with every key and its value as text, in the order of the table, but
// not with the words of a worker that is started by hand. Of the keys of
// [backend] only those that this run's backend reads.
typedef void config_visit(void *ctx, const struct key *k, const char *value);
void config_each(const struct run *r, config_visit *fn, void *ctx);

// As config_each(), but only with keys that the user gave. With `again`, only
// with those of them that a repeated run needs: not its rank, folder, endpoints
// or encryption keys.
void config_each_asked(const struct run *r, bool again, config_visit *fn,
                       void *ctx);

// Whether the user gave this key.
bool config_asked(const struct run *r, const char *key);

// Writes KEY=VALUE of a key to `text`, which it returns: for refusals.
enum { CONFIG_SAID = CONFIG_WORD + CONFIG_PATH };
const char *config_said(const struct run *r, const char *key,
                        char text[CONFIG_SAID]);

// The word of a key that chooses one of several.
const char *config_word(const struct run *r, const char *key);

// The keys of [backend] alone: settings_defaults() sets all to their defaults,
// settings_set() sets one from text. 0, or -1 after fail().
void settings_defaults(struct sync_settings *s);
int settings_set(struct sync_settings *s, const char *key, const char *value);

// Checks settings of parameter servers that depend on each other. 0, or -1
// after fail().
int settings_check(const struct sync_settings *s);

// Lines "key=value" on which all workers must agree, for cluster_check_same().
// config_line() adds one line with a format as of printf(), config_add_run()
// all keys of a run, config_add_settings() those of a backend.
struct config_lines {
    char text[1 << 14];
    size_t n; // bytes used
};
void config_line(struct config_lines *l, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void config_add_run(struct config_lines *l, const struct run *r);
void config_add_settings(struct config_lines *l, const struct sync_settings *s);
