// dnn_graph.h - builds an operation graph of cuDNN, plans it, and runs it.
//
//     tensors, operations -> graph -> heuristics -> engine -> plan, workspace
//     execute: the plan + a pointer for each tensor that is not virtual
//
// A virtual tensor joins two operations and is never in memory. All tensors
// have four dimensions; strides are in elements.
//
// After a call has failed, all later calls do nothing. So a caller may describe
// a whole graph and check only the result of dnn_graph_plan().

#pragma once

#include "model/cuda/dnn.h"

#include <stdbool.h>

enum { DNN_RANK = 4, DNN_MOST_MADE = 128, DNN_MOST_OPS = 24 };

struct dnn_graph {
    const struct dnn *dnn; // borrowed
    char name[96];         // for messages
    bool failed;
    int64_t next_id; // the number of the next virtual tensor
    int nmade, nops;
    void *made[DNN_MOST_MADE]; // every descriptor, to be destroyed
    void *ops[DNN_MOST_OPS];
    void *plan;
    size_t workspace; // bytes that the plan needs
};

// `name` says what the graph computes. Virtual tensors get the numbers from
// `first_virtual` on; the caller's tensors must have smaller numbers.
void dnn_graph_open(struct dnn_graph *g, const struct dnn *dnn,
                    const char *name, int64_t first_virtual);
void dnn_graph_close(struct dnn_graph *g);

// ---- tensors. Each function returns a descriptor that the graph owns, or NULL
// after fail().

// Tensor number `id`. dnn_graph_run() gets its device address, which must be a
// multiple of 16 bytes.
void *dnn_tensor(struct dnn_graph *g, int64_t id, enum dnn_data type,
                 const int64_t dim[DNN_RANK], const int64_t stride[DNN_RANK]);

// One float. dnn_graph_run() gets its host address.
void *dnn_value(struct dnn_graph *g, int64_t id);

// A virtual tensor: contiguous, or with the given strides.
void *dnn_virtual(struct dnn_graph *g, enum dnn_data type,
                  const int64_t dim[DNN_RANK]);
void *dnn_virtual_strided(struct dnn_graph *g, enum dnn_data type,
                          const int64_t dim[DNN_RANK],
                          const int64_t stride[DNN_RANK]);

// ---- operations, in fp32 unless said otherwise

// c (.., m, n) = a (.., m, k) b (.., k, n)
void dnn_matmul(struct dnn_graph *g, void *a, void *b, void *c);

// y = x MODE b. Unary modes take NULL for b. A dimension of 1 in b is repeated.
void dnn_pointwise(struct dnn_graph *g, enum dnn_pointwise mode, void *x,
                   void *b, void *y);

// y = the index of each element of x's shape along `axis`, as int32.
void dnn_index(struct dnn_graph *g, void *x, int64_t axis, void *y);

// y = x >= b, of int32, as a boolean.
void dnn_not_less(struct dnn_graph *g, void *x, void *b, void *y);

// y = keep ? x : other.
void dnn_select(struct dnn_graph *g, void *keep, void *x, void *other, void *y);

// y = x, reduced along the dimensions in which y has length 1.
void dnn_reduce(struct dnn_graph *g, enum dnn_reduction mode, void *x, void *y);

// y = the elements of x in the order of memory, with y's dimensions and
// strides.
void dnn_reshape(struct dnn_graph *g, void *x, void *y);

// ---- the plan

// Finalizes the graph. Chooses the first of cuDNN's engines, in the order of
// its heuristics, that has the same bits in every run and for which a plan can
// be made. Returns 0, or -1 after fail().
int dnn_graph_plan(struct dnn_graph *g);

// Puts the plan into the stream of the handle. `ids` and `pointers` (n each)
// are the numbers and addresses of all tensors that are not virtual; those of
// values are host addresses. `workspace` is g->workspace bytes of device
// memory. Returns 0, or a cudnnStatus_t.
int dnn_graph_run(const struct dnn_graph *g, int n, const int64_t *ids,
                  void *const *pointers, void *workspace);
