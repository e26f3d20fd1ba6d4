// range.h - spans as ranges of NVTX, which NVIDIA's tools show beside the GPU.
//
// Each open span is a range of its thread, in the domain "lockstep": its name
// is the span's kind, its payload the index. NVTX is a header, which loads what
// NVTX_INJECTION64_PATH names (`nsys profile` sets it) and else does nothing.
// Without the header there are no ranges.

#ifndef TELEMETRY_RANGE_H
#define TELEMETRY_RANGE_H

#ifdef LOCKSTEP_NVTX

void range_begin(int kind, const char *name, int index);
void range_end(void);

#else

static inline void range_begin(int kind, const char *name, int index)
{
    (void)kind;
    (void)name;
    (void)index;
}

static inline void range_end(void)
{
}

#endif

#endif
