// product.h - the matrix products of a step, by oneDNN.
//
// fp32 goes through dnnl_sgemm. bf16 goes through matmul primitives, which are
// kept by shape, where this processor has bf16 instructions (AVX-512 or AMX).
// Else, and in fp16, operands are widened to fp32 in scratch, multiplied there
// and rounded once: the accumulation is fp32 in every case.
//
// sgemm is slow where `a` is transposed (dW). In fp32 `a` is turned round
// first, PRODUCT_DEPTH rows at a time, which sgemm would cut anyway, so that
// the piece is used while it lies in the cache. Its rows are PRODUCT_APART
// apart: at a power of two they would all fall into the same few lines of the
// cache. In bf16, and for fewer rows, the library's own way is as fast
// (docs/cpu.md).

#ifndef MODEL_CPU_PRODUCT_H
#define MODEL_CPU_PRODUCT_H

#include "model/cpu/kernels.h"

struct product;

enum { PRODUCT_DEPTH = 512, PRODUCT_APART = PRODUCT_DEPTH + 32 };

// out (m, n) = a b + bias, row-major and contiguous.
struct product_job {
    int m, n, k;
    bool ta, tb;       // a is stored (k, m); b is stored (n, k)
    const void *a, *b; // in the model's format
    const void *bias;  // (n) in the model's format, or NULL
    void *out;
    bool out_fp32; // out is float, whatever the format
    bool add;      // out += a b; only with out_fp32 and no bias
};

// True if products of this format widen their operands: the scratch is then a
// float for each element of the largest a, b and out.
bool product_widens(enum dtype format);

// Borrowed memory to work in.
struct product_scratch {
    float *wide_a, *wide_b, *wide_out; // NULL unless product_widens()
    float *turned;   // (turned_rows, PRODUCT_APART); NULL but in fp32
    int turned_rows; // largest m that is turned round
};

// 0, or -1 after fail().
int product_open(struct product **p, const struct kernels *k,
                 const struct product_scratch *scratch);
void product_close(struct product **p);

void product_run(struct product *p, const struct product_job *j);

#endif
