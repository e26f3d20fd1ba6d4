// live.h - a run as its files are while it goes on: where each worker is now.
//
// Only the ends of steps.R.csv and util.R.csv are read, so looking costs as
// little late in a run as at its beginning.

#ifndef LOCKSTEP_LIVE_H
#define LOCKSTEP_LIVE_H

#include <stdbool.h>

struct live_worker {
    bool is_server;
    int rank;
    int step;              // 0: none yet
    double loss, val_loss; // the latest of its own; NaN: none yet
    double tokens_per_s;   // over its last steps
    double compute_s;      // a step, of its last steps: it alone, no waiting
    double busy;           // share of the last sample: computing, or its GPU
    double bytes;          // resident
    double gpu_bytes, gpu_power_w; // NaN: no GPU
};

struct live {
    char dir[1024]; // the run that is shown
    char backend[64];
    int world, steps; // steps: in all
    bool over;        // summary.json is there
    int n;            // workers, then servers
    struct live_worker *at;
};

// Look at DIR: a run, or the latest run of an experiment. 0, or -1 after
// fail(): nothing has begun there. Free it either way.
int live_read(struct live *l, const char *dir);
void live_free(struct live *l);

// How many times as long as the median worker's this one's computing takes.
double live_slowness(const struct live *l, int worker);

#endif
