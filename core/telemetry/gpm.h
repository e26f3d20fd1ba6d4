// gpm.h - how busy the parts of a GPU are: NVML's "GPU performance monitoring",
// which Hopper and later have. Counters, so a value is of the time between two
// looks.

#ifndef TELEMETRY_GPM_H
#define TELEMETRY_GPM_H

struct gpm;

// Of the time since the look before; NaN: this GPU does not tell.
struct gpm_sample {
    double sm_share;       // multiprocessors with a warp on them, mean
    double occupancy;      // warps there, of the most there could be
    double tensor_share;   // tensor cores at work
    double dram_share;     // the memory's bandwidth
    double nvlink_in_bps;  // bytes/s over all links
    double nvlink_out_bps; // the same, sent
};

// `library` is libnvidia-ml, initialised, and `gpu` its handle: borrowed. NULL
// where the driver or the GPU has none of it.
struct gpm *gpm_open(void *library, void *gpu);
void gpm_read(struct gpm *g, struct gpm_sample *out);
void gpm_close(struct gpm **g);

#endif
