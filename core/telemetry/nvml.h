// nvml.h - NVIDIA's management library, loaded at run time. It is not needed to
// build; without it there are no GPU columns.

#ifndef TELEMETRY_NVML_H
#define TELEMETRY_NVML_H

#include "telemetry/gpm.h"

struct nvml;

struct nvml_sample {     // NaN: this GPU does not tell
    double util_share;   // of NVML's last period, some kernel ran
    double memory_bytes; // in use, by everybody
    double power_w;
    double clock_mhz; // of its multiprocessors
    double energy_j;  // since nvml_open(), exact where power_w is a mean
    double power_limited, heat_limited; // 1: clocks are lower for that now
    struct gpm_sample gpm;
};

enum { NVML_UUID = 16 }; // bytes

// As nvidia-smi -L writes it: GPU-00112233-4455-6677-8899-aabbccddeeff.
enum { NVML_UUID_TEXT = 48 };
void nvml_uuid_text(char text[NVML_UUID_TEXT],
                    const unsigned char uuid[NVML_UUID]);

// The GPU by its UUID, because NVML's own numbering ignores
// CUDA_VISIBLE_DEVICES. NULL where there is no library, no driver or no such
// GPU.
struct nvml *nvml_open(const unsigned char uuid[NVML_UUID]);
void nvml_read(struct nvml *n, struct nvml_sample *out);
void nvml_close(struct nvml **n);

#endif
