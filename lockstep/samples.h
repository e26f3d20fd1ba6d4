// samples.h - what a run's util.csv comes to: processor, memory, GPU.

#ifndef LOCKSTEP_SAMPLES_H
#define LOCKSTEP_SAMPLES_H

// Means are over all samples of all workers; peaks are the largest sample of
// any. NaN: not measured.
struct samples {
    double cpu_share;      // mean, of the threads that a worker was given
    double taken_share;    // of the time that was to be computed in, the part
                           // in which the process had no processor
    double switches_per_s; // mean, involuntary, of a worker
    double worker_bytes, server_bytes; // peaks of resident memory
    double gpu_util, gpu_power_w;      // means
    double gpu_bytes;                  // peak, of a GPU, whoever uses it
};

// Of DIR/util.csv; all NaN where there is none.
void samples_read(struct samples *s, const char *dir);

#endif
