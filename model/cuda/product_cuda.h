// product_cuda.h - the matrix products of a step on a GPU, by cuBLASLt.
//
// Bias, GELU and GELU's gradient are epilogues of a product, so that a result
// is written to memory once. If cuBLASLt has no such epilogue for the format or
// this GPU, a kernel of ours follows the product instead; the caller cannot
// tell. A bias gradient also uses a kernel of ours, unless cuBLASLt's epilogue
// was timed and is faster. Sums are fp32 in every format.

#ifndef MODEL_CUDA_PRODUCT_CUDA_H
#define MODEL_CUDA_PRODUCT_CUDA_H

#include "device/device.h"

#include <stdbool.h>
#include <stddef.h>

enum { CUDA_PRODUCT_ALGORITHMS = 16 }; // most algorithms that can be timed

struct cuda_product;

enum epilogue {
    EPILOGUE_NONE,
    EPILOGUE_BIAS,     // out = a b + bias
    EPILOGUE_GELU,     // pre = a b + bias; out = gelu(pre)
    EPILOGUE_DGELU,    // out = a b * gelu'(pre)
    EPILOGUE_BIAS_GRAD // out = a b, bias_grad = sum of b's rows
};

// out (m, n) = a b, row-major. All pointers are to device memory.
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

// `tf32`: fp32 factors may be rounded to TF32. `partial` is borrowed scratch of
// cuda_partial(C) floats for bias gradients of up to 4C numbers; NULL if no job
// has one. Returns 0, or -1 after fail(). Close sets *p to NULL.
int cuda_product_open(struct cuda_product **p, struct device *d,
                      enum dtype format, bool tf32, float *partial);
void cuda_product_close(struct cuda_product **p);

// Makes the first product of a shape time up to `algorithms` algorithms of
// cuBLASLt, each with its epilogue and without, and keep the fastest. 0: takes
// cuBLASLt's first one. Times vary, so another run may choose another
// algorithm, which adds in another order. Call this at most once, before the
// first product. Returns 0, or -1 after fail().
int cuda_product_time(struct cuda_product *p, int algorithms);

// From now on, products leave this many multiprocessors (0: none) to other
// work, such as collectives at the same time. cuBLASLt decides how.
void cuda_product_leave(struct cuda_product *p, int multiprocessors);

// Puts a product into the compute queue. If it times algorithms, the host waits
// for them, and no output of the job may overlap an input.
void cuda_product_run(struct cuda_product *p, const struct cuda_product_job *j);

#endif
