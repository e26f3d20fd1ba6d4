// check_gpu.c - refuses settings that only a GPU, or a library of GPUs, has.

#include "config/config.h"

#include "base/base.h"

#include <string.h>

// Refuses attention=cudnn with settings for which cuDNN has no attention
// kernels, or would compute something else than our kernels and the CPU.
static int check_cudnn(const struct run *r, bool gpu)
{
    if (!gpu)
        return fail("attention=cudnn is for GPUs; try: device=cuda, or "
                    "attention=ours");
    if (config_format(r) == DTYPE_F32)
        return fail("attention=cudnn computes in 16 bits, precision=%s; try: "
                    "precision=bf16, or attention=ours",
                    r->precision == PRECISION_TF32 ? "tf32" : "fp32");
    if (r->dropout > 0)
        return fail("attention=cudnn draws other random numbers than all other "
                    "ways, so dropout=%g would drop other weights; try: "
                    "dropout=0, or attention=ours",
                    r->dropout);
    if (mesh_pieces(&r->mesh) > 1)
        return fail("attention=cudnn computes whole sequences, and mesh= "
                    "divides them (cp); try: attention=ours");
    return 0;
}

int config_check_gpu(const struct run *r)
{
    bool gpu = strcmp(r->device, "cpu") != 0;
    if (r->profile.count > 0 && !gpu)
        return fail("profile=%d:%d is for a profiler of GPUs, and device=cpu "
                    "has none; try: trace=on, or device=cuda",
                    r->profile.from, r->profile.count);
    if (r->tune > 0 && !gpu)
        return fail("tune=%d measures algorithms of a GPU's library; try: "
                    "device=cuda, or leave it out",
                    r->tune);
    if (r->settings.ctas > 0 && !gpu)
        return fail("ctas=%d is a setting of NCCL, which needs GPUs; try: "
                    "device=cuda, or leave it out",
                    r->settings.ctas);
    if (r->kernels && (!gpu || r->trace == TRACE_OFF || r->out[0] == '\0'))
        return fail("kernels=1 records a GPU's kernels in the trace; try: "
                    "device=cuda trace=on out=DIR");
    return r->attention == ATTENTION_CUDNN ? check_cudnn(r, gpu) : 0;
}
