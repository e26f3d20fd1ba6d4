// nvml.h - NVIDIA's management library, loaded at run time. It is not needed to
// build; without it there are no GPU columns.

#pragma once

struct nvml;

// What the library knows of a GPU. From NVML_SM on: counters of "GPU
// performance monitoring", which GPUs have from Hopper on. Their values are for
// the time since the last nvml_read().
enum nvml_metric {
    NVML_UTIL,          // share of NVML's last period in which a kernel ran
    NVML_MEMORY,        // bytes in use by all processes
    NVML_POWER,         // W, a mean over a short time
    NVML_CLOCK,         // MHz of its multiprocessors
    NVML_ENERGY,        // J since nvml_open(), from a counter of the GPU
    NVML_POWER_LIMITED, // 1: this limit lowers the clocks now
    NVML_HEAT_LIMITED,
    NVML_SM,         // mean share of multiprocessors that have a warp
    NVML_OCCUPANCY,  // warps on them, as a share of the maximum
    NVML_TENSOR,     // share of time that tensor cores work
    NVML_DRAM,       // share of the memory's bandwidth
    NVML_NVLINK_IN,  // bytes/s received over all links
    NVML_NVLINK_OUT, // the same, sent
    NVML_METRICS
};

// Their names in util.csv.
extern const char *const nvml_names[NVML_METRICS];

enum { NVML_UUID = 16 }; // bytes

// Writes a UUID as nvidia-smi -L does:
// GPU-00112233-4455-6677-8899-aabbccddeeff.
enum { NVML_UUID_TEXT = 48 };
void nvml_uuid_text(char text[NVML_UUID_TEXT],
                    const unsigned char uuid[NVML_UUID]);

// Opens the GPU with this UUID, because NVML's own numbers ignore
// CUDA_VISIBLE_DEVICES. NULL if there is no library, no driver or no such GPU.
struct nvml *nvml_open(const unsigned char uuid[NVML_UUID]);

// NaN: not known for this GPU, or at the first call for counters.
void nvml_read(struct nvml *n, double out[NVML_METRICS]);
void nvml_close(struct nvml **n);
