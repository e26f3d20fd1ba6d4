// steps.h - one row a step and rank: the file that every plot of loss reads.
//
//     steps.csv          one worker, or all merged when the job is over
//     steps.R.csv        rank R of several, while they run
//
// Comma-separated, one header row, units in the names; a value that a step does
// not have (val_loss, mostly) is empty. A rank's loss is that of its own batch,
// and its val_loss of its own share of the validation batches: those of the job
// are the means over the ranks, as summary.json has them. restarts and
// steps_lost count from the run's beginning: how often the job, or a worker of
// an elastic one, was started again after a failure, and how many steps this
// rank then did once more, or missed. time_s is the time of the steps that
// count, each once; lost_s is the training time of those that were done once
// more: their sum is the whole time of training, without starting and waiting
// to start again. bytes_tx and bytes_rx are the backend's; stage_tx and
// stage_rx are payload between the stages of a pipeline, and t_bubble_us is how
// long this one waited for others; slice_tx, slice_rx and t_join_us are the
// same of slices. t_compute_us has no waiting in it.

#ifndef TELEMETRY_STEPS_H
#define TELEMETRY_STEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct step_row {
    int step;        // from 1
    uint64_t tokens; // of the whole job, up to and with this step
    double time_s;   // since training began (resumes add up), see above
    double loss, lr, grad_norm, loss_scale;
    bool skipped, dropped;
    int lag;
    uint64_t step_us, data_us, compute_us, ready_us, sync_us;
    uint64_t bytes_out, bytes_in, head_out, head_in; // of this step
    uint64_t stage_out, stage_in; // between stages: payload, beside the above
    uint64_t bubble_us;           // waited for other stages
    uint64_t slice_out, slice_in; // between slices of the model likewise
    uint64_t join_us;             // waited for their sums
    double val_loss;              // NaN: not evaluated at this step
};

struct steps;

// Open OUT's file for `rank` of `world`. Rows after step `keep` of an earlier
// part of the run are dropped (0: begin anew); where this is the restart number
// `restarts` of a launcher (0: none) they count as lost; or, where the rank has
// `joined` the others behind their step `keep`, those that it missed. *time_s
// receives the time of the last row kept. 0, or -1 after fail().
int steps_open(struct steps **s, const char *out, const char *backend, int rank,
               int world, int keep, bool joined, int restarts, double *time_s);
int steps_write(struct steps *s, const struct step_row *row);
int steps_close(struct steps **s); // -1 after fail() when the disk is full

// Merge steps.0.csv .. of `world` ranks into steps.csv by step and rank, and
// remove them. Ranks that left none are left out.
int steps_merge(const char *out, int world);

// What summary.json says of a finished run; NaN where there is nothing.
struct steps_summary {
    int steps, ranks, skipped, dropped;
    int restarts, lost;           // most of any rank
    double final_loss, best_loss; // mean over ranks, per step
    double final_val_loss, best_val_loss;
    int best_val_step;
    double seconds;       // evaluation and checkpoints included
    double seconds_lost;  // beside those: most of any rank
    double median_step_s; // harmonic mean of the ranks' median steps
    double tokens_per_s;  // of the whole job: those of a step / median_step_s
    uint64_t tokens, bytes_out, bytes_in;
};

// Read OUT/steps.csv. `every`: workers exchange after so many steps, a round,
// and the time of a step is the mean of its round's; 1: each by itself. 0, or
// -1 after fail().
int steps_summarise(const char *out, int every, struct steps_summary *sum);

#endif
