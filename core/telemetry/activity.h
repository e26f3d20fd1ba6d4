// activity.h - each kernel and copy of a GPU, by NVIDIA's CUPTI, which is found
// at run time: nothing needs it to build.
//
// Recording costs the run some percent, so it is asked for. One recording at a
// time in a process, as CUPTI has it.

#ifndef TELEMETRY_ACTIVITY_H
#define TELEMETRY_ACTIVITY_H

#include <stddef.h>
#include <stdint.h>

struct activity;

enum { ACTIVITY_NAME = 96 };

struct activity_record {
    uint64_t begin_ns, end_ns; // of now_ns()'s clock
    uint64_t bytes;            // of a copy; 0: a kernel
    uint32_t stream;           // as CUPTI numbers them
    const char *name;          // lives as long as the recording
};

// Record from now on, at most so many. 0, or -1 after fail(): no CUPTI, or
// somebody else uses it, as a profiler does.
int activity_open(struct activity **a, size_t most);

// Ends it; the device has done all that it was asked. The records by stream,
// those of a stream by time, in *at, borrowed; how many, in *n. Returns how
// many were dropped for want of room.
uint64_t activity_end(struct activity *a, const struct activity_record **at,
                      size_t *n);
void activity_close(struct activity **a); // takes NULL and one under way

// What a reader wants to see of a kernel: of a mangled name the first part,
// without characters that JSON would not take.
void activity_name(char out[ACTIVITY_NAME], const char *name);

#endif
