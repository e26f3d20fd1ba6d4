// op_time.h - a clock around every operation of the model.

#pragma once

#include <stdbool.h>

// All calls of one kind of operation: a product, or a kernel.
struct op_time {
    const char *name;
    double seconds;
    double flop;  // of products; 0 for kernels, which are judged by bytes
    double bytes; // read and written, each tensor once
    int calls;
    bool inside; // part of another operation, whose time includes this time
};

enum { OP_TIMES = 32 };

// Sets all counts to 0 and starts counting, with workload_clock(threads). If
// threads is 0, no more calls are counted.
void op_time_start(int threads);

// Copies the counts since the start to out. Returns the number of kinds.
int op_time_read(struct op_time out[OP_TIMES]);
