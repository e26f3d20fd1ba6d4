// budget.h - the time of a step by its FLOP, and the time and the cost of a
// whole training.
//
//     step      model_flop() * tokens of the step / (flops * mfu)
//     training  tokens / tokens a second of all workers
//     cost      hours of training * workers * price

#ifndef LOCKSTEP_BUDGET_H
#define LOCKSTEP_BUDGET_H

#include "config/keys.h"

#include <stddef.h>

struct budget {        // 0: not asked
    double flops, mfu; // peak FLOP/s of a worker's device; share that is used
    double tokens;     // of the whole training
    double price;      // of a worker and hour
};

// The rows of these keys, for a table of a struct that has a member `budget`.
// clang-format off
#define BUDGET_KEY(group, type, member) \
    group, #member, "0", KEY_NUMBER, offsetof(type, budget.member), false
#define BUDGET_KEYS(group, type) \
    {BUDGET_KEY(group, type, flops), .min = 1, .max = 1e18, \
     .zero = "not known", .unit = "FLOP/s", \
     .help = "with mfu=, instead of compute_ms=: the peak of a worker's " \
             "device, as 312e12"}, \
    {BUDGET_KEY(group, type, mfu), .min = 1e-6, .max = 1, \
     .zero = "not known", .unit = "share", \
     .help = "with flops=: the share of the peak that training reaches"}, \
    {BUDGET_KEY(group, type, tokens), .min = 1, .max = 1e18, \
     .zero = "not asked", \
     .help = "of the whole training, to print its time"}, \
    {BUDGET_KEY(group, type, price), .min = 1e-9, .max = 1e9, \
     .zero = "not asked", \
     .help = "of a worker and hour, to print the cost; with tokens="}
// clang-format on

// Refuses words that need or exclude each other. gpu: device= estimates the
// time. 0, or -1 after fail().
int budget_check(const struct budget *b, bool gpu, double compute_ms);

// With flops=, sets *compute_ms to the time of `tokens` tokens of `flop` FLOP
// each (model_flop()).
void budget_compute(const struct budget *b, double flop, double tokens,
                    double *compute_ms);

// Print the heads and the values of the columns "training" and "cost", those
// that were asked for.
void budget_head(const struct budget *b);
void budget_row(const struct budget *b, double tokens_per_s, int workers);

#endif
