// shape.h - finds the model that a run's settings describe, and its blocks.

#pragma once

#include "sync/law.h"
#include "sync/law_mesh.h"

struct backend;
struct bucket;
struct model_config;
struct model_job;
struct optim_config;
struct pipeline;
struct run;
struct squeeze_unit;
struct sync_settings;

// Writes to *out the preset of model=, or the model of the file that init=
// names. Settings such as layers= replace its numbers. They may not contradict
// the file. The vocabulary is 0 if the data decides it. Returns 0, or -1 after
// fail().
int shape_model(const struct run *r, struct model_config *out);

// Refuses shards of the optimiser's state with slices of unequal length: each
// slice would add the replicas' gradients in an order of its own, and the
// tensors that all slices have would drift apart. A vocabulary of 0 is not
// known yet, and passes. Returns 0, or -1 after fail(). shape_check() does this
// before anything starts, with the model that the settings describe.
int shape_check_slices(const struct run *r, const struct model_config *whole);

// Refuses sequences of fewer tokens than workers that divide them, and fewer
// heads than workers that exchange heads. Returns 0, or -1 after fail().
// shape_check() does this, too, and refuses more buckets than a trainer takes.
int shape_check_pieces(const struct run *r, const struct model_config *whole);
int shape_check(const struct run *r);

// Bytes that each number of a join between slices takes of a worker's memory:
// in the buffer of the joins, and as two casts of a 16-bit wire
// (horovod_ring/ring_wire.h).
size_t shape_join_bytes(const struct run *r);

// Writes the model's blocks to out[] as buckets, in the order in which backward
// fills them. There must be at most `most`. Returns how many there are.
int shape_blocks(const struct model_config *c, struct bucket *out, int most);

enum { TRAIN_MAX_BUCKETS = 4096 };

// Writes the buckets that derived settings say to out[], last first. Returns
// how many there are, or -1 after fail() if they are more than `most`.
int shape_buckets(const struct model_config *c, const struct sync_settings *s,
                  struct bucket *out, int most);

// Lists the matrices in o->decay. Returns 0, or -1 after fail() if they are too
// many.
int shape_decay(const struct model_config *c, struct optim_config *o);

// Lists in *units the ranges of a model that derived settings compress one by
// one. The caller frees them with mem_free(). Returns how many there are, or -1
// after fail().
int shape_units(const struct model_config *c, const struct sync_settings *s,
                struct squeeze_unit **units);

// Bytes of the messages with which a worker sends a model's compressed gradient
// to servers, in a step. *s: derived settings.
double shape_messages(const struct model_config *c,
                      const struct sync_settings *s);

// The law of times of an exchange of a model's compressed gradients, between
// `replicas` replicas. `apart`: servers on hosts of their own; 0: one beside
// each replica. Returns how many exchanges follow each other (squeezed_law()),
// or -1 after fail().
int shape_squeezed_law(const struct model_config *c, const struct backend *b,
                       const struct sync_settings *s, int replicas, int apart,
                       struct law *out);

// Returns the exchange of a step of a backend with shards, of `world` replicas
// and `micro` micro-batches, but without its units. *s: after sync_derive().
struct law_step shape_step(const struct run *r, const struct sync_settings *s,
                           int world, int micro);

// Lists in *units the ranges of a model whose gradients a backend with shards
// sums one by one. *s: derived settings. The caller frees them
// with mem_free(). Returns how many there are, or -1 after fail().
int shape_shards(const struct model_config *c, const struct sync_settings *s,
                 struct bucket **units);

// With squeeze=: adds the messages of a model's gradients to *step. 0, or -1
// after fail().
int shape_scatter(const struct model_config *c, const struct sync_settings *s,
                  struct law_step *step);

// shape_pipeline: writes the timetable of a step to *out, by accum= and the
// mesh. shape_cut: writes to *out the part of the whole model that a stage of
// it holds. Each returns 0, or -1 after fail().
int shape_pipeline(const struct run *r, struct pipeline *out);
int shape_cut(const struct run *r, const struct pipeline *p, int stage,
              const struct model_config *whole, struct model_config *out);

// Returns what the workers with parts of a model exchange in a step: between
// stages, of which `stage` has `layers` layers, between slices, and for
// sequences in pieces. *r: derived settings. replicas: workers with the same
// part.
struct law_mesh shape_mesh(const struct run *r, const struct pipeline *p,
                           const struct model_config *whole, int replicas,
                           int stage, int layers);

// shape_stage: sets the numbers of activation slots, inputs and edges that a
// stage needs (train/stages.c) in *job; with one stage it changes nothing.
// shape_first_input: inputs before this number belong to forwards that receive
// nothing. shape_ahead: how many backwards ahead gradients are received.
void shape_stage(const struct pipeline *p, int stage, struct model_job *job);
int shape_first_input(const struct pipeline *p, int stage);
int shape_ahead(const struct pipeline *p, int stage);
