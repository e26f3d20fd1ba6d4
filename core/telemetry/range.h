// range.h - spans as NVTX ranges, which NVIDIA's tools show beside the GPU.
//
// Each open span is a range of its thread, in the domain "lockstep". The name
// of the range is the span's kind, its payload the index. NVTX is a header that
// loads the library which NVTX_INJECTION64_PATH names (`nsys profile` sets it),
// and else does nothing. Without the header these functions do nothing.

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
