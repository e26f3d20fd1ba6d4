// loss_curve.h - reads the loss of a run by step, tokens and seconds from its
// steps.csv.
//
//     smooth    mean loss of the last CURVE_MEAN steps, or of all if fewer
//     reached   the first step whose smoothed loss is at most a target
//
// Losses and the seconds of a step are means over the ranks. The seconds of a
// step exclude evaluation and checkpoints.

#ifndef LOCKSTEP_LOSS_CURVE_H
#define LOCKSTEP_LOSS_CURVE_H

enum { CURVE_MEAN = 10 }; // steps

struct curve_point {
    int step;
    double tokens;         // of all workers, including this step
    double time_s;         // since training began, with evaluation and so on
    double train_s;        // the sum of the seconds of all steps so far
    double loss, val_loss; // nats a token; val_loss is NaN at most steps
    double smooth;
    double restarts; // of the job so far; NaN: not recorded
};

struct curve {
    int n;
    struct curve_point *at;
};

// Reads DIR/steps.csv. 0, or -1 after fail(). The caller frees *c in both
// cases.
int curve_read(struct curve *c, const char *dir);
void curve_free(struct curve *c);

// Returns the least smoothed loss; NaN for an empty curve.
double curve_lowest(const struct curve *c);

// Returns the first point with a smoothed loss of at most `target`, or NULL. It
// points into *c.
const struct curve_point *curve_reached(const struct curve *c, double target);

#endif
