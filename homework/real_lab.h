// real_lab.h - labs on real workers: lab.h's calls by group.h's send and recv.
//
// Where it is less than the virtual cluster: messages have an even number of
// bytes, there is one thread a rank and no lab_recv_any(), and a request is
// complete only when those that were begun before it are. lab_compute() takes
// no time, and alpha_s and bytes_per_s are 0: nobody knows them.

#ifndef HOMEWORK_REAL_LAB_H
#define HOMEWORK_REAL_LAB_H

#include "group/group.h"
#include "labs/lab.h"

#include <stdbool.h>

struct real; // of one worker

// The other workers are the group's members; it must allow pairs, and
// LAB_REQUESTS tickets. NULL after fail(). Close the group first: it may still
// receive into what lab_alloc() gave. real_close() takes NULL.
struct real *real_open(struct group *g);
void real_close(struct real **r);

// What a student's function is called with, until real_close().
struct lab *real_lab(struct real *r);

// After the function has returned: waits for what it has left under way, and
// frees what lab_alloc() gave. 0, or -1 after fail().
int real_finish(struct real *r);

#endif
