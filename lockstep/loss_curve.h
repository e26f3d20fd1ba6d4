// loss_curve.h - the loss of a run by step, tokens and seconds, from its
// steps.csv.
//
//     smooth    mean loss of the last CURVE_MEAN steps, or of those there are
//     reached   the first step whose smoothed loss is at most a target
//
// Losses are means over the ranks. A step's seconds leave evaluation and
// checkpoints out; where ranks have paces of their own they are the mean.

#ifndef LOCKSTEP_LOSS_CURVE_H
#define LOCKSTEP_LOSS_CURVE_H

enum { CURVE_MEAN = 10 }; // steps

struct curve_point {
    int step;
    double tokens;         // of the whole job, up to and with this step
    double time_s;         // since training began, all of it
    double train_s;        // in steps alone
    double loss, val_loss; // nats a token; val_loss is NaN at most steps
    double smooth;
    double restarts; // of the job until then; NaN: not written down
};

struct curve {
    int n;
    struct curve_point *at;
};

// Read DIR/steps.csv. 0, or -1 after fail(). Free it either way.
int curve_read(struct curve *c, const char *dir);
void curve_free(struct curve *c);

// The least smoothed loss; NaN of an empty curve.
double curve_lowest(const struct curve *c);

// The first point at or below `target`; NULL if there is none.
const struct curve_point *curve_reached(const struct curve *c, double target);

#endif
