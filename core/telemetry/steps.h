// steps.h - a file with a row for each step and rank. Plots of loss read it.
//
//     steps.csv          one worker, or the rows of all after the job's end
//     steps.R.csv        rank R of several, during the job
//
// Values are cells (telemetry/cell.h). There is one header row, with units in
// the names. If a step has no value for a column (mostly val_loss), the column
// is empty.
//
// loss           of the rank's own batch
// val_loss       of the rank's own share of the validation batches. The job's
//                loss and val_loss are means over the ranks (summary.json)
// tokens         how many tokens the whole job has trained on up to the end of
//                the step: those of all gradients that entered an update. A
//                step that was skipped adds none, nor does a gradient that was
//                dropped, nor a worker that was dead. Under ssp and asp every
//                row has the sum over all workers at that moment
// restarts       how often the job, or a worker of an elastic job, was started
//                again after a failure, since the run began; by the launcher,
//                or by a scheduler or a user with resume=auto
// steps_lost     how many steps this rank did again or missed, since the run
//                began
// time_s         the time of the steps that count, each counted once
// lost_s         the training time of steps that were done again. time_s plus
//                lost_s is the whole time of training. It does not include the
//                time that a start takes, nor the wait before a restart
// bytes_tx, _rx  bytes of the backend, sent and received
// stage_tx, _rx  payload between the stages of a pipeline
// t_bubble_us    the time that this stage waited for others
// slice_tx, _rx, t_join_us    the same for slices
// piece_tx, _rx  payload between workers that divide sequences; t_join_us has
//                the wait for it
// t_compute_us   computing, without any waiting
// t_ready_us     giving complete buckets to the backend, and waiting for blocks
//                of the model that other workers hold
// t_sync_us      waiting for the backend, encoding and decoding of gradients
//                (squeeze=), and the update
// own_norm       with own_norm=1 the norm of the rank's own gradient before the
//                sum and before clipping; else 0

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct step_row {
    int step;        // from 1
    uint64_t tokens; // of all gradients in updates up to the end of this step
    double time_s;   // since training began, over all parts of the run
    double loss, lr, grad_norm, loss_scale;
    bool skipped, dropped;
    int lag;
    uint64_t step_us, data_us, compute_us, ready_us, sync_us;
    uint64_t bytes_out, bytes_in, head_out, head_in; // of this step
    uint64_t stage_out, stage_in; // payload between stages, not in the above
    uint64_t bubble_us;           // waiting for other stages
    uint64_t slice_out, slice_in; // payload between slices of the model
    uint64_t piece_out, piece_in; // between workers that divide sequences
    uint64_t join_us;             // waiting for their sums
    double val_loss;              // NaN: not evaluated at this step
    double own_norm;              // 0: not recorded
};

struct steps;

// Opens the file of `rank` of `world` in the folder `out`. Drops rows of an
// earlier part of the run after step `keep` (0: all of them). `restarts` is the
// number of the launcher's restart (0: none). After a restart the dropped steps
// count as lost, and those up to `keep` that this rank missed. If it has
// `joined` the other workers after their step `keep`, only the latter do.
// *time_s becomes the time of the last row that is kept. 0, or -1 after fail().
int steps_open(struct steps **s, const char *out, const char *backend, int rank,
               int world, int keep, bool joined, int restarts, double *time_s);

// Writes one row. 0, or -1 after fail().
int steps_write(struct steps *s, const struct step_row *row);

// Takes NULL. 0, or -1 after fail() if the file could not be written.
int steps_close(struct steps **s);

// Merges steps.0.csv .. of `world` ranks into steps.csv by step and rank, and
// removes them. A rank without such a file keeps its rows of steps.csv. 0, or
// -1 after fail().
int steps_merge(const char *out, int world);

// The values of a finished run for summary.json; NaN if there is none.
struct steps_summary {
    int steps, ranks, skipped, dropped;
    int restarts, lost;           // the largest of all ranks
    double final_loss, best_loss; // mean over ranks, per step
    double final_val_loss, best_val_loss;
    int best_val_step;
    double seconds;       // evaluation and checkpoints included
    double seconds_lost;  // not in `seconds`; the largest of all ranks
    double median_step_s; // harmonic mean of the ranks' median steps
    double tokens_per_s;  // of the whole job: tokens of a step / median_step_s
    double mean_step_s, mean_bubble_s; // of all rows
    uint64_t tokens, bytes_out, bytes_in;
};

// Reads OUT/steps.csv. Workers exchange once in `every` steps. For the median,
// these steps count as one step, with their mean time. 0, or -1 after fail().
int steps_summarise(const char *out, int every, struct steps_summary *sum);
