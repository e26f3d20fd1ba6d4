// compute.h - what a worker computes between two updates.

#ifndef TRAIN_COMPUTE_H
#define TRAIN_COMPUTE_H

struct step_row;
struct trainer;

// Forward and backward over all micro-batches; buckets go out during the last.
// Fills in t->loss, on the last stage of several, and the row's times. 0, or -1
// after fail().
int compute_step(struct trainer *t, struct step_row *row);

// Mean loss over this replica's share of the validation batches. 0, or -1 after
// fail().
int compute_val_loss(struct trainer *t, double *loss);

#endif
