// timetable.h - pipeline schedules: which stage computes what, and when.
//
// A model's layers are cut into stages, one a member. A step's micro-batches
// run through all stages forward, then through all of them backward. The order
// in which a stage takes them is the schedule. Three stages, four
// micro-batches, F forward, B backward, each as long:
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
//     1f1b   in gpipe's time, but a stage goes backward as soon as it can, so
//            that it keeps the activations of few micro-batches
//       0  F0 F1 F2       B0 F3 B1    B2    B3
//       1     F0 F1    B0 F2 B1 F3 B2    B3
//       2        F0 B0 F1 B1 F2 B2 F3 B3
//
// With `chunks` above 1, 1f1b is interleaved: a stage holds so many parts of
// the model, part c of stage s being number c stages + s of all, so that the
// idle time at both ends shrinks. With one stage, naive and 1f1b are the
// accumulation of gradients: F0 B0 F1 B1.
//
// A link that is slow costs 1f1b a round trip in every turn. `ahead` more
// forwards a hop before the first backward hide it, and hold more activations.
//
// Everything here is a function of its arguments. Schedules: Huang et al.,
// "GPipe", 2019; Narayanan et al., "Efficient large-scale language model
// training on GPU clusters using Megatron-LM", 2021, section 2.2.

#ifndef PIPELINE_TIMETABLE_H
#define PIPELINE_TIMETABLE_H

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
    int ahead;  // 1f1b with one chunk: further forwards a hop
};

enum action_kind { ACTION_FORWARD, ACTION_BACKWARD };

struct action {
    enum action_kind kind;
    int micro, chunk; // from 0
};

// 0, or -1 after fail() if there is no such timetable: a number out of range;
// chunks without 1f1b, with one stage, with micro no multiple of stages, or
// with ahead; ahead without 1f1b.
int pipeline_check(const struct pipeline *p);

// What follows takes a pipeline that pipeline_check() accepts.

// Actions of a stage: a forward and a backward of each micro-batch and chunk.
int timetable_length(const struct pipeline *p);

// Number k of a stage, 0 .. timetable_length() - 1.
struct action timetable_action(const struct pipeline *p, int stage, int k);

// Micro-batches, of one chunk each, whose activations a stage holds at once.
int timetable_slots(const struct pipeline *p, int stage);

// ---- on paper

struct pipeline_times {
    const double *forward_s, *backward_s; // of a stage, for one chunk
    double hop_s; // from stage to stage, either way; links take any load
    const double *hops_s; // by stage, to the one behind; NULL: hop_s for all
};

struct timetable_entry {
    int stage;
    struct action action;
    double begin_s, end_s;
};

// Run all stages: each takes its actions in order, each as soon as the stage
// and what the action needs are there. Writes stages * timetable_length()
// entries, by stage and time. Returns the time of the step in s; below 0 if the
// stages wait for each other for ever, or after fail() without memory.
double timetable_run(const struct pipeline *p, const struct pipeline_times *t,
                     struct timetable_entry *out);

// The share of a step in which a stage is idle, the mean of all stages, for
// stages that take equal times and links that take none: naive 1 - 1/p; gpipe
// and 1f1b (p-1)/(v m + p-1) for p stages, m micro-batches and v chunks.
// Narayanan et al., section 2.2, as a share of the whole step.
double timetable_bubble(const struct pipeline *p);

#endif
