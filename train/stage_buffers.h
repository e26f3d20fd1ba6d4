// stage_buffers.h - the residual streams and gradients that travel between
// stages, in memory that the network can read and write.
//
// On a CPU that is the model's own memory. On a GPU each of the model's buffers
// has a copy in pinned memory of the host:
//
//     network -> input (host) -> input (GPU) .. output (GPU) -> output (host)
//     -> network

#pragma once

struct trainer;
struct stage_buffers;

enum stage_buffer { STAGE_INPUT, STAGE_OUTPUT, STAGE_EDGE };

// As many buffers of each kind as shape_stage() says, and memory for the
// tied table. Buffer i is model_input(i), model_output(i) or model_edge(i) of
// the trainer's model. 0, or -1 after fail(). Close accepts NULL.
int stage_buffers_open(struct stage_buffers **out, struct trainer *t);
void stage_buffers_close(struct stage_buffers **b);

// Where the network reads and writes buffer i.
void *stage_buffers_at(struct stage_buffers *b, enum stage_buffer kind, int i);

// Copies what the network has written to the model: later work of the compute
// queue finds it. Copies what the model has computed to the network's side, and
// waits.
void stage_buffers_up(struct stage_buffers *b, enum stage_buffer kind, int i);
void stage_buffers_down(struct stage_buffers *b, enum stage_buffer kind, int i);

// The tied table's floats of one of the trainer's vectors, for the network to
// read and write: the vector itself, or a copy of them. There is one copy at a
// time. stage_buffers_put_tied() writes a copy back.
float *stage_buffers_tied(struct stage_buffers *b, float *vector);
void stage_buffers_put_tied(struct stage_buffers *b, float *vector);
