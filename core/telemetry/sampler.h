// sampler.h - a thread that looks at this process ten times a second.
//
//     util.csv      t_s,rank,metric,value       (util.R.csv while it runs)
//
//     compute_share       of the time, in forward, backward and update, and
//                         slowed on purpose
//     slowed_share        that alone, where there is some (straggler=)
//     evaluate_share      looking at the validation loss, likewise
//     wait_share          held up by the other workers or the wire
//     data_share          waiting for a batch
//     cpu_share           processor time of the process / (time x its cores)
//     resident_bytes      memory of the process
//     involuntary_switches_per_s   taken off a core that somebody else wants
//     gpu_util_share, gpu_memory_bytes, gpu_power_w, gpu_clock_mhz   NVML's,
//                         where there is one: some kernel ran, which a waiting
//                         one does too
//     gpu_energy_j        since the run began
//     gpu_power_limited, gpu_heat_limited   1: clocks are lower for that
//     gpu_sm_share, gpu_occupancy_share, gpu_tensor_share, gpu_dram_share,
//     gpu_nvlink_in_bytes_per_s, gpu_nvlink_out_bytes_per_s   by counters, on
//                         Hopper and later: multiprocessors with work, warps of
//                         the most they hold, tensor cores at work, bandwidth
//                         of the memory; over NVLink
//
// Each value is over the time since the sample before. Of a server (rank s0,
// s1 ..) compute_share is adding and updating, wait_share having nothing to do.
// What others find out, they add: sampler_put(). On a GPU the trainer does so
// once a step, at the time when the step ended, by events (device/busy.h):
//
//     gpu_compute_share   of the step, at work on forward, backward and update
//     gpu_comm_share      in collectives, waiting for other workers included
//     gpu_down_share, gpu_up_share     copying to and from the host

#ifndef TELEMETRY_SAMPLER_H
#define TELEMETRY_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

struct spans;
struct sampler;

struct sampler_config {
    const char *path;          // the CSV
    const char *who;           // column rank
    const struct spans *spans; // may be NULL: no shares
    double cores;              // given to this process
    double per_s;              // samples a second
    uint64_t zero_ns; // where t_s begins; 0: where spans_zero() will be, and no
                      // sample is taken before
    bool server;      // its compute is adding and updating
    const unsigned char *gpu; // its UUID, 16 bytes; NULL: none
};

// 0, or -1 after fail().
int sampler_open(struct sampler **s, const struct sampler_config *config);

// One more row, of the moment at_ns. From any thread; s may be NULL.
void sampler_put(struct sampler *s, uint64_t at_ns, const char *metric,
                 double value);

// Takes a last sample, ends the thread. -1 after fail() when the disk is full.
int sampler_close(struct sampler **s);

#endif
