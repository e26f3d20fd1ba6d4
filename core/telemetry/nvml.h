// nvml.h - NVIDIA's management library, loaded at run time. It is not needed to
// build; without it there are no GPU columns.

#pragma once

#include "telemetry/gpm.h"

struct nvml;

struct nvml_sample {     // NaN: not known for this GPU
    double util_share;   // share of NVML's last period in which a kernel ran
    double memory_bytes; // in use by all processes
    double power_w;      // a mean over a short time
    double clock_mhz;    // of its multiprocessors
    double energy_j;     // since nvml_open(), from a counter of the GPU
    double power_limited, heat_limited; // 1: the limit lowers the clocks now
    struct gpm_sample gpm;
};

enum { NVML_UUID = 16 }; // bytes

// Writes a UUID as nvidia-smi -L does:
// GPU-00112233-4455-6677-8899-aabbccddeeff.
enum { NVML_UUID_TEXT = 48 };
void nvml_uuid_text(char text[NVML_UUID_TEXT],
                    const unsigned char uuid[NVML_UUID]);

// Opens the GPU with this UUID, because NVML's own numbers ignore
// CUDA_VISIBLE_DEVICES. NULL if there is no library, no driver or no such GPU.
struct nvml *nvml_open(const unsigned char uuid[NVML_UUID]);
void nvml_read(struct nvml *n, struct nvml_sample *out);
void nvml_close(struct nvml **n);
