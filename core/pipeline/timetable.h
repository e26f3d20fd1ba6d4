// timetable.h - pipeline schedules: which stage computes what, and when.
//
// A model's layers are cut into stages, one for each member. A step's
// micro-batches run forward through all stages, then backward through all of
// them. The order in which a stage takes them is the schedule. With three
// stages, four micro-batches, F for forward and B for backward, equally long:
//
//     naive  one micro-batch at a time
//       0  F0             B0 F1             B1 ..
//       1     F0       B0       F1       B1
//       2        F0 B0             F1 B1
//
//     gpipe  all forward, then all backward
//       0  F0 F1 F2 F3             B0 B1 B2 B3
//       1     F0 F1 F2 F3       B0 B1 B2 B3
//       2        F0 F1 F2 F3 B0 B1 B2 B3
//
//     1f1b   takes as long as gpipe, but a stage computes each backward as soon
//            as it can, and so keeps the activations of few micro-batches
//       0  F0 F1 F2       B0 F3 B1    B2    B3
//       1     F0 F1    B0 F2 B1 F3 B2    B3
//       2        F0 B0 F1 B1 F2 B2 F3 B3
//
// With `chunks` above 1, 1f1b is interleaved: a stage holds `chunks` parts of
// the model, which shortens the idle time at both ends. Chunk c of stage s is
// part c * stages + s of the model. With one stage, naive and 1f1b are the
// accumulation of gradients: F0 B0 F1 B1.
//
// On a slow link, 1f1b waits for a round trip in each pair of a forward and a
// backward. With `ahead` above 0, a stage computes more forwards before its
// first backward: `ahead` for each hop to the last stage. They hide the wait,
// but the stage keeps more activations.
//
// Everything here is a function of its arguments. Schedules: Huang et al.,
// "GPipe", 2019; Narayanan et al., "Efficient large-scale language model
// training on GPU clusters using Megatron-LM", 2021, section 2.2.

#pragma once

enum pipeline_kind {
    PIPELINE_NAIVE,
    PIPELINE_GPIPE,
    PIPELINE_1F1B,
    PIPELINE_KINDS
};

// NULL-terminated, in the order of the enum.
extern const char *const pipeline_names[];

enum { PIPELINE_STAGES = 64, PIPELINE_MICRO = 4096, PIPELINE_CHUNKS = 16 };

struct pipeline {
    enum pipeline_kind kind;
    int stages; // 1 .. PIPELINE_STAGES
    int micro;  // micro-batches of a step, 1 .. PIPELINE_MICRO
    int chunks; // parts of the model on a stage, 1 .. PIPELINE_CHUNKS
    int ahead;  // 1f1b with one chunk: additional forwards for each hop
};

enum action_kind { ACTION_FORWARD, ACTION_BACKWARD };

struct action {
    enum action_kind kind;
    int micro, chunk; // from 0
};

// 0, or -1 after fail() if there is no such schedule. Every number must be in
// its range. chunks > 1 needs 1f1b, two stages or more, ahead 0, and a `micro`
// that is a multiple of stages. ahead > 0 needs 1f1b with one chunk.
int pipeline_check(const struct pipeline *p);

// The functions below take a pipeline that pipeline_check() accepts.

// The number of actions of a stage: a forward and a backward for each
// micro-batch and chunk.
int timetable_length(const struct pipeline *p);

// Action number k of a stage, 0 .. timetable_length() - 1.
struct action timetable_action(const struct pipeline *p, int stage, int k);

// The number of activation slots of a stage. A slot holds the activations of
// one micro-batch in one chunk, from its forward to its backward.
int timetable_slots(const struct pipeline *p, int stage);

// ---- simulation

struct pipeline_times {
    const double *forward_s, *backward_s; // by stage, for one chunk
    double hop_s;         // from stage to stage, either way, under any load
    const double *hops_s; // by stage, to the next one; NULL: hop_s for all
};

struct timetable_entry {
    int stage;
    struct action action;
    double begin_s, end_s;
};

// Simulates a step: each stage takes its actions in order. An action begins
// when the stage is free and its input has arrived. Writes stages *
// timetable_length() entries to `out`, by stage and time. Returns the time of
// the step in s. Returns -1 if the stages wait for each other forever, and -1
// after fail() if memory is short.
double timetable_run(const struct pipeline *p, const struct pipeline_times *t,
                     struct timetable_entry *out);

// The share of a step in which a stage is idle, as the mean of all stages, if
// all stages take equal times and links take none: naive 1 - 1/p; gpipe and
// 1f1b (p-1)/(v m+p-1), for p stages, m micro-batches and v chunks. Narayanan
// et al., section 2.2, there as a share of the ideal time.
double timetable_bubble(const struct pipeline *p);
