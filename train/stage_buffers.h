// stage_buffers.h - the residual streams and gradients that travel between
// stages, in memory that the network can read and write.
//
// On a CPU that is the model's own memory. On a GPU each of the model's buffers
// has a copy in pinned memory of the host:
//
//     network -> input (host) -> input (GPU) .. output (GPU) -> output (host)
//     -> network

#ifndef TRAIN_STAGE_BUFFERS_H
#define TRAIN_STAGE_BUFFERS_H

#include <stddef.h>

struct trainer;
struct stage_buffers;

enum stage_buffer { STAGE_INPUT, STAGE_OUTPUT, STAGE_EDGE };

// For each kind count[kind] buffers of `bytes` bytes. Buffer i is
// model_input(i), model_output(i) or model_edge(i) of the trainer's model. 0,
// or -1 after fail(). Close accepts NULL.
int stage_buffers_open(struct stage_buffers **out, struct trainer *t,
                       const int count[3], size_t bytes);
void stage_buffers_close(struct stage_buffers **b);

// Where the network reads and writes buffer i.
void *stage_buffers_at(struct stage_buffers *b, enum stage_buffer kind, int i);

// Copies what the network has written to the model: later work of the compute
// queue finds it. Copies what the model has computed to the network's side, and
// waits. 0, or -1 after fail().
int stage_buffers_up(struct stage_buffers *b, enum stage_buffer kind, int i);
int stage_buffers_down(struct stage_buffers *b, enum stage_buffer kind, int i);

#endif
