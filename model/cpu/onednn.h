// onednn.h - one matmul of oneDNN. Its C interface changed from version 2 to 3.
// The different code is in onednn_2.c (Debian 12) and onednn_3.c (Debian 13),
// and CMake takes one of them.

#pragma once

#include "base/base.h"

#include <oneapi/dnnl/dnnl.h>
#include <stdbool.h>
#include <stddef.h>

// oneDNN fails because of a defect here (a wrong shape), or because there is no
// memory in the middle of a step. A caller can mend neither.
#define DNNL(call) CHECK((call) == dnnl_success)

enum { ONEDNN_ARGS = 4 }; // a, b, out, bias

struct onednn_matrix {
    int batch; // number of matrices, one after the other; 1: a single matrix
    int rows, columns;
    bool transposed; // stored as (columns, rows)
    dnnl_data_type_t type;
    bool packed; // in the library's preferred form
};

// out = a b. With `bias`, a row (1, columns of out) is added to every row; with
// `add`, the old out is added.
struct onednn_matmul {
    struct onednn_matrix a, b, out;
    bool bias, add;
    dnnl_data_type_t bias_type;
    // Whether a kernel of this name may be used; NULL: any may.
    bool (*takes)(const char *name);
    // DNNL_MEMORY_NONE: the caller sets the arguments' addresses.
    // DNNL_MEMORY_ALLOCATE: the library allocates them.
    void *memory;
};

// Opens the primitive with the library's first kernel that may be used, and its
// arguments: 3, or 4 with a bias. The caller destroys both. Returns the number
// of arguments, or 0 if the library has no such primitive.
int onednn_open(const struct onednn_matmul *m, dnnl_engine_t engine,
                dnnl_primitive_t *primitive, dnnl_exec_arg_t args[ONEDNN_ARGS]);

// These two functions differ by version. onednn_describe() returns the
// descriptor of the kernel to use, which the caller destroys, or NULL if there
// is none. onednn_bytes() returns the size of an argument's memory.
dnnl_primitive_desc_t onednn_describe(const struct onednn_matmul *m,
                                      dnnl_engine_t engine);
size_t onednn_bytes(const dnnl_exec_arg_t *arg);

// Fills in the dimensions and strides of a matrix. Returns the number of
// dimensions: 2, or 3 with a batch.
static inline int onednn_shape(const struct onednn_matrix *m, dnnl_dims_t dims,
                               dnnl_dims_t strides)
{
    int n = 0;
    if (m->batch > 1) {
        dims[n] = m->batch;
        strides[n++] = (dnnl_dim_t)m->rows * m->columns;
    }
    dims[n] = m->rows;
    strides[n++] = m->transposed ? 1 : m->columns;
    dims[n] = m->columns;
    strides[n++] = m->transposed ? m->rows : 1;
    return n;
}
