// stages.h - a worker's stage of a pipeline: what it holds of the model, and
// what it sends to the stages beside it.
//
//     stage 0   |F0 |F1 |F2 |        |B0 |B1 |B2 |tie| step
//                  \   \   \       /   /   /     |
//     stage 1       |F0 |B0 |F1 |B1 |F2 |B2 |    |tie| step
//
// A stage takes its actions in the order of its timetable
// (pipeline/timetable.h). Forward sends the residual stream to the stage
// behind, backward its gradient to the one before; both are received ahead,
// into buffers that wait for it. A whole model is a pipeline of one stage,
// which sends nothing.
//
// First and last stage have a table wte each, tied: when both have done their
// last backward, each adds the other's gradient to its own. Only then is the
// table's bucket handed to the backend, so that replicas sum what is complete.
//
// Payload of a stage, in a step of m micro-batches of N rows: m N C numbers of
// the model's format out of each chunk that does not end the model (forward),
// and of each that does not begin it (backward), and as many in; V C floats
// each way for the tied table; 16 (p - 1) bytes each way for the norm.

#ifndef TRAIN_STAGES_H
#define TRAIN_STAGES_H

#include "group/group.h"
#include "model/model.h"
#include "pipeline/timetable.h"

struct trainer;

// How a step goes: t->plan, of accum= and the mesh. 0, or -1 after fail().
int stages_check(struct trainer *t);

// Which stage this is and what it holds: t->stage and t->config, of t->whole
// and the mesh. 0, or -1 after fail().
int stages_plan(struct trainer *t);

// What the model needs for it.
void stages_buffers(const struct trainer *t, struct model_job *job);

// The stages beside it, in a circle.
int stages_before(const struct trainer *t);
int stages_behind(const struct trainer *t);

// Buffers of inputs that belong to rooms: those before are of forwards that
// receive nothing. Gradients that are received before they are needed.
int stages_first_input(const struct trainer *t);
int stages_ahead(const struct trainer *t);

// Bytes that stages_open() takes.
size_t stages_bytes(const struct trainer *t);

// Meet the other stages. A call of all workers. 0, or -1 after fail().
int stages_open(struct trainer *t);
void stages_close(struct trainer *t);

// Around each action of a step, in order: what it works on, which is there;
// then what it has made leaves. Between them the model computes. Each returns
// 0, or -1 after fail().
int stages_begin(struct trainer *t, struct action a, struct model_pass *pass);
int stages_end(struct trainer *t, struct action a,
               const struct model_pass *pass);

// Whether a chunk of this stage begins the model, or ends it.
bool stages_is_first(const struct trainer *t, int chunk);
bool stages_is_last(const struct trainer *t, int chunk);

// Elements at the start of the gradient that stages_tie() completes. It comes
// behind all actions of a step, of several stages. 0, or -1 after fail().
size_t stages_tied(const struct trainer *t);
int stages_tie(struct trainer *t);

// Between stages, outside a step: chunk `chunk` of all stages, one after the
// other. Receive its input, and send its output. 0, or -1 after fail().
int stages_receive(struct trainer *t, int chunk);
int stages_send(struct trainer *t, int chunk);

// *squares := the sum over the stages, in their order; the step's loss is that
// of the last one. 0, or -1 after fail().
int stages_sum(struct trainer *t, double *squares);

// What the last stage has is on all stages. 0, or -1 after fail().
int stages_share(struct trainer *t, double *of_last);

// What has moved between stages since open; all 0 with one.
struct group_stats stages_moved(const struct trainer *t);

#endif
