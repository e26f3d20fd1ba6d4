// gpm.h - how busy the parts of a GPU are, from NVML's "GPU performance
// monitoring". Hopper and later have it. These are counters: a value tells
// about the time between two looks.

#ifndef TELEMETRY_GPM_H
#define TELEMETRY_GPM_H

struct gpm;

// All values are of the time since the last look. NaN: this GPU does not tell.
struct gpm_sample {
    double sm_share;       // mean share of multiprocessors with a warp
    double occupancy;      // warps there, as a share of the maximum
    double tensor_share;   // share of time that tensor cores work
    double dram_share;     // share of the memory's bandwidth
    double nvlink_in_bps;  // bytes/s over all links
    double nvlink_out_bps; // the same, sent
};

// `library` is libnvidia-ml, initialised, and `gpu` a handle of it; both are
// borrowed. NULL if the driver or the GPU does not have these counters.
struct gpm *gpm_open(void *library, void *gpu);
void gpm_read(struct gpm *g, struct gpm_sample *out);
void gpm_close(struct gpm **g);

#endif
