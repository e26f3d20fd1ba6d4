// product_cuda.h - the matrix products of a step on a GPU, by cuBLASLt.
//
// Bias, GELU and GELU's gradient are epilogues of a product, so that a result
// is written to memory once. If cuBLASLt has no such epilogue for the format or
// this GPU, or one that is less exact than the format (GELU in fp32), a kernel
// of ours follows the product instead; the caller cannot tell. A bias gradient
// also uses a kernel of ours, unless cuBLASLt's epilogue was timed and is
// faster. Sums are fp32 in every format.

#pragma once

#include "device/device.h"
#include "model/product_job.h"

enum { CUDA_PRODUCT_ALGORITHMS = 16 }; // most algorithms that can be timed

struct cuda_product;

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
void cuda_product_run(struct cuda_product *p, const struct product_job *j);
