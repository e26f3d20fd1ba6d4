// samples.h - summarises a run's util.csv: processor, memory and GPU.

#ifndef LOCKSTEP_SAMPLES_H
#define LOCKSTEP_SAMPLES_H

// Means are over all samples of all workers; peaks are the largest sample of
// any. NaN: not measured.
struct samples {
    double cpu_share;      // processor time of a worker / (time x its cores)
    double taken_share;    // share of the computing time in which the process
                           // had no processor
    double switches_per_s; // mean of a worker's involuntary context switches
    double worker_bytes, server_bytes; // peaks of resident memory
    double gpu_util, gpu_power_w;      // means
    double gpu_bytes; // peak of a GPU's memory that all processes use together
};

// Reads DIR/util.csv. All values are NaN if there is no such file.
void samples_read(struct samples *s, const char *dir);

#endif
