// live.h - reads the state of a run, while it is going on, from its files.
//
// It reads only the ends of steps.R.csv and util.R.csv of each rank R, so the
// cost does not grow with the length of the run.

#ifndef LOCKSTEP_LIVE_H
#define LOCKSTEP_LIVE_H

#include <stdbool.h>
#include <time.h>

struct live_worker {
    bool is_server;
    int rank;
    int step;              // 0: none yet
    double loss, val_loss; // its latest ones; NaN: none yet
    double tokens_per_s;   // mean of its last steps
    double compute_s; // seconds a step without waiting, mean of those steps
    double busy;      // share of time that it, or its GPU, computes
    double bytes;     // resident memory
    double gpu_bytes, gpu_power_w; // NaN: no GPU
};

struct live {
    char dir[1024]; // the folder of the run
    char backend[64];
    int world, steps;       // workers; steps that the run will have
    bool ended, over;       // the run, and if it is one of an experiment, the
                            // experiment, has ended
    time_t row_at;          // when the newest row of steps.csv came; 0: none
    time_t heard_at;        // the same for all that the run writes
    int n;                  // workers and servers
    struct live_worker *at; // workers, then servers
};

// Reads the state of DIR: a run, or the latest run of an experiment. 0, or -1
// after fail() if no run has begun there. The caller frees *l in both cases.
int live_read(struct live *l, const char *dir);
void live_free(struct live *l);

// Returns the computing time of a worker's steps, divided by that of the median
// worker.
double live_slowness(const struct live *l, int worker);

#endif
