// product.h - the matrix products of a step, by oneDNN.
//
// fp32 uses dnnl_sgemm. bf16 uses matmul primitives, which are kept by shape,
// if this processor has bf16 instructions (AVX-512 or AMX). Otherwise, and in
// fp16, the operands are cast to fp32 in scratch and multiplied there, and the
// result is rounded once. Sums are in fp32 in every case.
//
// sgemm is slow if `a` is transposed (dW). So in fp32 `a` is transposed first,
// in pieces of PRODUCT_DEPTH rows, so that a piece is still in the cache when
// it is used; sgemm would divide k into such pieces anyway. A piece's rows are
// PRODUCT_APART numbers apart: with a power of two they would all compete for
// the same few lines of the cache. In bf16, and for fewer rows, the library
// alone is as fast (docs/cpu.md).

#pragma once

#include "model/kernels.h"
#include "model/product_job.h"

struct product;

enum { PRODUCT_DEPTH = 512, PRODUCT_APART = PRODUCT_DEPTH + 32 };

// True if products of this format cast their operands to fp32. Then the scratch
// needs a float for each element of the largest a, b and out.
bool product_casts_up(enum dtype format);

// Borrowed scratch memory.
struct product_scratch {
    float *wide_a, *wide_b, *wide_out; // NULL unless product_casts_up()
    float *transposed;   // (transposed_rows, PRODUCT_APART); NULL unless fp32
    int transposed_rows; // the largest m of an `a` that is transposed first
};

// Copies *scratch, whose memory must stay valid until product_close(). Returns
// 0, or -1 after fail(). product_close() sets *p to NULL.
int product_open(struct product **p, const struct kernels *k,
                 const struct product_scratch *scratch);
void product_close(struct product **p);

// Computes a product on all threads of the OpenMP team. Rows are contiguous. Of
// the epilogues it does the bias alone.
void product_run(struct product *p, const struct product_job *j);
