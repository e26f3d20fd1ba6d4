// op_time.h - a clock around every operation of the model.

#ifndef BENCH_OP_TIME_H
#define BENCH_OP_TIME_H

#include <stdbool.h>

// Operations by kind; products apart from what is no product.
struct op_time {
    const char *name;
    double seconds;
    double flop;  // of products; 0: it is judged by its bytes
    double bytes; // read and written once
    int calls;
    bool inside; // of another operation, whose time contains it
};

enum { OP_TIMES = 32 };

// Start counting from nothing, with the clock for so many threads; 0: off.
void op_time_start(int threads);

// Copies what has been counted since into out; returns how many kinds.
int op_time_read(struct op_time out[OP_TIMES]);

#endif
