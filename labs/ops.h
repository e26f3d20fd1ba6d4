// ops.h - an implementation of lab.h's calls: a table of functions. lab.h
// describes each of them.

#ifndef LABS_OPS_H
#define LABS_OPS_H

#include "labs/lab.h"

struct lab_ops {
    int (*isend)(struct lab *l, int to, const void *p, size_t bytes,
                 struct lab_req *r);
    int (*irecv)(struct lab *l, int from, void *p, size_t bytes,
                 struct lab_req *r);
    int (*wait)(struct lab *l, struct lab_req *r, int n);
    int (*recv_any)(struct lab *l, struct lab_note *n, void *p, size_t most);
    double (*now)(const struct lab *l);
    void (*compute)(struct lab *l, double seconds);
    void *(*alloc)(struct lab *l, size_t n, size_t size);
    int (*missing)(struct lab *l, int rank, const char *why);
};

#endif
