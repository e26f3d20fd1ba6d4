// real_lab.h - labs on real workers: lab.h's calls use group.h's send and recv.
//
// Labs can do less here than on the virtual cluster. Each rank has one thread,
// and there is no lab_recv_any(). A request is complete only after all requests
// before it. lab_compute() takes no time. alpha_s and bytes_per_s are unknown,
// so they are 0.

#pragma once

#include "group/group.h"
#include "labs/lab.h"

#include <stdbool.h>

struct real; // of one worker

// The other workers are the group's members. The group must allow pairs, and
// LAB_REQUESTS tickets. NULL after fail(). Close the group before real_close():
// it may still receive into memory of lab_alloc(). real_close() takes NULL.
struct real *real_open(struct group *g);
void real_close(struct real **r);

// The argument for a student's function, valid until real_close().
struct lab *real_lab(struct real *r);

// What a lab's job gives a function: v, n floats, becomes the sum of all
// workers' v, with the same bits on all of them. Returns when it is complete:
// 0, or -1 after fail().
int real_sum(struct real *r, float *v, size_t n);

// Call it after the function has returned. It waits for requests that are still
// under way, and frees the memory of lab_alloc(). 0, or -1 after fail().
int real_finish(struct real *r);
