// sampler.h - a thread that samples the utilisation of this process, by default
// ten times a second.
//
//     util.csv      t_s,rank,metric,value       (util.R.csv while it runs)
//
//     compute_share       share of the time in forward, backward, update, and
//                         in sleeps that slow a worker down on purpose
//     slowed_share        only these sleeps, if there are any (straggler=)
//     evaluate_share      computing the validation loss, if that happened
//     wait_share          waiting for other workers or for messages, and
//                         sending, receiving and adding in the trainer's thread
//     data_share          waiting for a batch
//     cpu_share           processor time of the process / (time x its cores)
//     resident_bytes      memory of the process
//     involuntary_switches_per_s   how often it lost a core to another thread
//     gpu_util_share, gpu_memory_bytes, gpu_power_w, gpu_clock_mhz   by NVML,
//                         with a GPU; util: the share of time in which a kernel
//                         ran, which includes kernels that only wait
//     gpu_energy_j        since the sampler was opened
//     gpu_power_limited, gpu_heat_limited   1: this lowers the clocks
//     gpu_sm_share, gpu_occupancy_share, gpu_tensor_share, gpu_dram_share,
//     gpu_nvlink_in_bytes_per_s, gpu_nvlink_out_bytes_per_s   by counters, from
//                         Hopper on: multiprocessors that have work, warps as a
//                         share of the maximum, tensor cores that work, share
//                         of the memory's bandwidth; bytes over NVLink
//
// Each share and rate is for the time since the sample before. For a server
// (rank s0, s1 ..) compute_share is the time of adding and updating, and
// wait_share the time without work. Other code adds its own rows with
// sampler_put(). On a GPU the trainer does so for each step, with the time of
// the step's end, from events (device/busy.h):
//
//     gpu_compute_share   share of the step in forward, backward and update
//     gpu_comm_share      in collectives, with their waits for other workers
//     gpu_down_share, gpu_up_share     copying to and from the host

#pragma once

#include <stdbool.h>
#include <stdint.h>

struct spans;
struct sampler;

struct sampler_config {
    const char *path;          // the CSV
    const char *who;           // column rank
    const struct spans *spans; // may be NULL: no shares
    double cores;              // given to this process
    double per_s;              // samples per second
    // The time (now_ns()) at which t_s is 0. If zero_ns is 0, spans_zero() is
    // this time, and no sample is taken before it is set.
    uint64_t zero_ns;
    bool server;              // its computing is adding and updating
    const unsigned char *gpu; // its UUID, 16 bytes; NULL: none
};

// Starts the thread. 0, or -1 after fail().
int sampler_open(struct sampler **s, const struct sampler_config *config);

// Writes one more row, with the time at_ns (now_ns()). Any thread may call it;
// s may be NULL.
void sampler_put(struct sampler *s, uint64_t at_ns, const char *metric,
                 double value);

// Takes a last sample and ends the thread. 0, or -1 after fail() if the file
// could not be written. Takes NULL.
int sampler_close(struct sampler **s);
