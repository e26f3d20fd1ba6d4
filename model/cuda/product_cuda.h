// product_cuda.h - the matrix products of a step on a GPU, by cuBLASLt.
//
// Bias, GELU and GELU's gradient ride on the product as epilogues, so that a
// result is written to memory once. Where cuBLASLt has no such epilogue for the
// format or this GPU, a kernel of ours follows the product instead, as for a
// bias gradient unless cuBLASLt's was timed and is faster: the caller cannot
// tell. Sums are fp32 in every format.

#ifndef MODEL_CUDA_PRODUCT_CUDA_H
#define MODEL_CUDA_PRODUCT_CUDA_H

#include "device/device.h"

#include <stdbool.h>
#include <stddef.h>

enum { CUDA_PRODUCT_ALGORITHMS = 16 }; // at most so many are timed

struct cuda_product;

enum epilogue {
    EPILOGUE_NONE,
    EPILOGUE_BIAS,     // out = a b + bias
    EPILOGUE_GELU,     // pre = a b + bias; out = gelu(pre)
    EPILOGUE_DGELU,    // out = a b * gelu'(pre)
    EPILOGUE_BIAS_GRAD // out = a b, bias_grad = sum of b's rows
};

// out (m, n) = a b, row-major. All pointers are the device's.
struct cuda_product_job {
    int m, n, k;
    bool ta, tb;           // a is stored (k, m); b is stored (n, k)
    const void *a, *b;     // in the model's format
    size_t a_row, out_row; // numbers between rows; 0: rows are contiguous
    void *out;
    bool out_fp32; // out is float, whatever the format
    bool add;      // out += a b, bias_grad += ..; only with out_fp32
    enum epilogue epilogue;
    const void *bias; // (n)
    void *pre;        // (m, n), before GELU
    float *bias_grad; // (n)
};

// `tf32`: fp32 factors may be rounded to TF32. `partial` is scratch as
// cuda_partial() counts it, for the widest output. 0, or -1 after fail().
int cuda_product_open(struct cuda_product **p, struct device *d,
                      enum dtype format, bool tf32, float *partial);
void cuda_product_close(struct cuda_product **p);

// From now on, of so many algorithms (0: one) that cuBLASLt names for a shape
// the fastest is taken when the shape first comes, each with its epilogue and
// without. The clock decides, so another run may choose otherwise, and sum in
// another order. Once, before the first product. 0, or -1 after fail().
int cuda_product_time(struct cuda_product *p, int algorithms);

// From now on products leave so many multiprocessors (0: none) to others, such
// as collectives beside them; it is the library that chooses how.
void cuda_product_leave(struct cuda_product *p, int multiprocessors);

// Ask the compute queue for a product. While algorithms are timed, the host
// waits, and what the job writes must not be what it reads.
void cuda_product_run(struct cuda_product *p, const struct cuda_product_job *j);

#endif
