// stages.h - runs a worker's stage of a pipeline: finds which part of the model
// the stage holds, and exchanges messages with the neighbouring stages.
//
//     stage 0   |F0 |F1 |F2 |        |B0 |B1 |B2 |tie| step
//                  \   \   \       /   /   /     |
//     stage 1       |F0 |B0 |F1 |B1 |F2 |B2 |    |tie| step
//
// A stage runs its actions in the order of its timetable
// (pipeline/timetable.h). Forward sends the residual stream to the stage
// behind, backward its gradient to the stage before. The receives are posted
// ahead, so that buffers are ready. A whole model is a pipeline of one stage,
// which sends nothing.
//
// The first and the last stage each have a copy of wte, the table of token
// embeddings. The copies are tied: when both stages have done their last
// backward, each adds the other's gradient of wte to its own. Only then is the
// table's bucket ready for the backend, so that replicas sum the complete
// gradient.
//
// Payload of a stage in a step of m micro-batches of N rows (p stages, C
// channels, V symbols): m N C numbers in the model's format from each chunk
// that does not end the model (forward) and from each that does not begin it
// (backward), and as many arrive; V C floats each way for the tied table; 16 (p
// - 1) bytes each way for the norm. stages_align() sends V C numbers from the
// first stage to the last one.

#pragma once

#include "group/group.h"
#include "model/model.h"
#include "pipeline/timetable.h"

struct trainer;

// Sets t->stage and t->config: which stage this is, and the part of t->whole
// that it holds. Returns 0, or -1 after fail().
int stages_plan(struct trainer *t);

// The carrier of messages between stages: "shm" or "tcp"; NULL with one stage.
// And how many members the groups of both directions have that share memory, or
// 0. Known after stages_open().
const char *stages_transport(const struct trainer *t);
int stages_sharing(const struct trainer *t);

// Connect to the other stages. All workers call it. Returns 0, or -1 after
// fail().
int stages_open(struct trainer *t);
void stages_close(struct trainer *t);

// Called around each action of a step, in the timetable's order. stages_begin:
// *pass says which buffers the model works on; their content has arrived.
// stages_end: sends what the action has made. Each returns 0, or -1 after
// fail().
int stages_begin(struct trainer *t, struct action a, struct model_pass *pass);
int stages_end(struct trainer *t, struct action a,
               const struct model_pass *pass);

// Whether a chunk of this stage begins the model, or ends it.
bool stages_is_first(const struct trainer *t, int chunk);
bool stages_is_last(const struct trainer *t, int chunk);

// stages_tied: the number of elements at the start of the gradient that
// stages_tie() completes; stages_open() allocates memory for those of the other
// end. Call stages_tie() after all actions of a step, with several stages. It
// returns 0, or -1 after fail().
size_t stages_tied(const struct trainer *t);
int stages_tie(struct trainer *t);

// Call it after each update. The last stage takes over the table of the first
// one, if replicas may have summed the two gradients in different orders.
// Returns 0, or -1 after fail().
int stages_align(struct trainer *t);

// For a forward outside a step, stage after stage: receive the input of chunk
// `chunk`, send its output. Each returns 0, or -1 after fail().
int stages_receive(struct trainer *t, int chunk);
int stages_send(struct trainer *t, int chunk);

// Replaces *squares by its sum over the stages, added in their order, and
// t->loss by that of the last stage. Returns 0, or -1 after fail().
int stages_sum(struct trainer *t, double *squares);

// Copies *of_last from the last stage to all stages. Returns 0, or -1 after
// fail().
int stages_share(struct trainer *t, double *of_last);

// Bytes that this worker has moved between stages since open; 0 with one stage.
struct group_stats stages_moved(const struct trainer *t);
