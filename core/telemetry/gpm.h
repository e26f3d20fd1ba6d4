// gpm.h - how busy the parts of a GPU are, by NVML's "GPU performance
// monitoring", which GPUs have from Hopper on. A value is the change of a
// counter between two calls of gpm_read().

#pragma once

struct gpm;

// All values are for the time since the last gpm_read(). NaN: this GPU does not
// have the counter.
struct gpm_sample {
    double sm_share;       // mean share of multiprocessors that have a warp
    double occupancy;      // warps on them, as a share of the maximum
    double tensor_share;   // share of time that tensor cores work
    double dram_share;     // share of the memory's bandwidth
    double nvlink_in_bps;  // bytes/s received over all links
    double nvlink_out_bps; // the same, sent
};

// `library` is libnvidia-ml, initialised, and `gpu` a handle of it; both are
// borrowed. NULL if the driver or the GPU does not have these counters.
struct gpm *gpm_open(void *library, void *gpu);

// g may be NULL. All values are NaN then, and at the first call.
void gpm_read(struct gpm *g, struct gpm_sample *out);
void gpm_close(struct gpm **g);
