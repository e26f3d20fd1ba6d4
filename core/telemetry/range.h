// range.h - spans as NVTX ranges, which NVIDIA's tools show beside the GPU.
//
// Each open span is a range of its thread, in the domain "lockstep". The name
// of the range is the span's kind, its payload the span's index. NVTX is a
// header. It loads the library that NVTX_INJECTION64_PATH names (`nsys profile`
// sets this variable). If the variable is not set, or this program was built
// without the header, these functions do nothing.

#pragma once

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
