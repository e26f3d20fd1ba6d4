// offload.h - the optimiser's state, or parameters, in a file instead of memory
// (offload=disk).
//
// The file has pieces: all slots of some elements each. While one is updated,
// a thread reads the next and writes the one before. So memory holds three:
//
//     file    [piece 0][piece 1][piece 2][piece 3] ..
//                 ^        ^        ^
//              written  updated   read
//
// An update reads and writes the whole state once. Between two updates the
// first pieces are read ahead. The file has no name: the system removes it when
// the process ends in any way. docs/offload.md has the law, and when to use it.

#pragma once

#include "optim/optim.h"

#include <stdbool.h>

struct offload;

// Makes the state of n elements, zeroed, in a file of the folder, and takes
// the disk space for all of it. NULL after fail().
struct offload *offload_open(const char *folder, int slots, size_t n);
void offload_close(struct offload **o);

// Finds the state of elements [at, at + *n): own[i] becomes the address of slot
// i's element `at`, and *n how many of them are there. It is valid until the
// next call. `changes`: the caller will write to it. o NULL: the state is in
// memory, at slots[]. 0, or -1 after fail().
int offload_take(struct offload *o, float *const *slots, size_t at,
                 bool changes, size_t *n, float **own);

// Bytes of memory that the state of n elements takes.
size_t offload_memory(int slots, size_t n);
