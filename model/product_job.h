// product_job.h - a matrix product of a step, as forward.c, backward.c and
// head.c ask a device for it.

#pragma once

#include <stdbool.h>
#include <stddef.h>

// What a device computes in the same pass as the product, so that a result is
// written to memory once. The CPU has no epilogues with GELU.
enum epilogue {
    EPILOGUE_NONE,
    EPILOGUE_BIAS,     // out = a b + bias
    EPILOGUE_GELU,     // pre = a b + bias; out = gelu(pre)
    EPILOGUE_DGELU,    // out = a b * gelu'(pre)
    EPILOGUE_BIAS_GRAD // out = a b, bias_grad = sum of b's rows
};

// out (m, n) = a b, row-major.
struct product_job {
    int m, n, k;
    bool ta, tb;           // a is stored (k, m); b is stored (n, k)
    const void *a, *b;     // in the model's format
    size_t a_row, out_row; // numbers between rows; 0: rows are contiguous
    void *out;
    bool out_fp32; // out is float, whatever the format
    bool add;      // out += a b, bias_grad += ..; only with out_fp32, no bias
    enum epilogue epilogue;
    const void *bias; // (n) in the model's format; NULL without one
    void *pre;        // (m, n), before GELU
    float *bias_grad; // (n)
};
