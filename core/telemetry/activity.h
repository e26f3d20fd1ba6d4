// activity.h - records each kernel and copy of a GPU, with NVIDIA's CUPTI. The
// library is found at run time: no build needs it.
//
// Recording slows the run by some percent, so it is off by default. CUPTI
// allows one recording at a time in a process.

#pragma once

#include <stddef.h>
#include <stdint.h>

struct activity;

enum { ACTIVITY_NAME = 96 };

struct activity_record {
    uint64_t begin_ns, end_ns; // by the clock of now_ns()
    uint64_t bytes;            // copied or set; 0: a kernel
    uint32_t stream;           // CUPTI's number of the stream
    const char *name;          // valid until activity_close()
};

// Starts a recording of at most `most` records. 0, or -1 after fail(): no
// CUPTI, or another program uses it, such as a profiler.
int activity_open(struct activity **a, size_t most);

// Ends the recording. The device must have done all its work. *at becomes the
// *n records, sorted by stream, then by time; borrowed. Returns how many
// records were dropped because there were more than `most`.
uint64_t activity_end(struct activity *a, const struct activity_record **at,
                      size_t *n);
void activity_close(struct activity **a); // takes NULL; ends a recording

// Writes the name of a kernel for readers: the first part of a mangled name,
// without characters that JSON does not allow.
void activity_name(char out[ACTIVITY_NAME], const char *name);
