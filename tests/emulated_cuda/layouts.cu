// layouts.cu - a product and two loads of matrices. The caller's tables say
// which numbers each lane holds.

#include "tests/emulated_cuda/layouts.h"

#include "model/cuda/tensor.cuh"

#include <cuda_runtime.h>

__global__ void product_kernel(float *c, const float *a, const float *b,
                               const int *at_a, const int *at_b,
                               const int *at_c)
{
    frag_a<__nv_bfloat16> x;
    frag_b<__nv_bfloat16> y;
    frag_c z = {};
    at_a += threadIdx.x * 8;
    at_b += threadIdx.x * 4;
    at_c += threadIdx.x * 4;
    for (int i = 0; i < 4; i++)
        x.v[i] = make_pair<__nv_bfloat16>(a[at_a[2 * i]], a[at_a[2 * i + 1]]);
    for (int i = 0; i < 2; i++)
        y.v[i] = make_pair<__nv_bfloat16>(b[at_b[2 * i]], b[at_b[2 * i + 1]]);
    math_bf16::mma(z, x, y);
    for (int i = 0; i < 4; i++)
        c[at_c[i]] = z.v[i];
}

__global__ void matrices_kernel(unsigned *out, const int *from, bool transposed)
{
    __shared__ alignas(16) uint16_t rows[256];
    uint32_t v[4];
    for (int i = (int)threadIdx.x; i < 256; i += 32)
        rows[i] = (uint16_t)i;
    __syncthreads();
    if (transposed)
        load_transposed(v, &rows[from[threadIdx.x * 8]]);
    else
        load_matrices(v, &rows[from[threadIdx.x * 8]]);
    for (int i = 0; i < 4; i++)
        out[threadIdx.x * 4 + i] = v[i];
}

void layout_product(void *stream, float *c, const float *a, const float *b,
                    const int *at_a, const int *at_b, const int *at_c)
{
    product_kernel<<<1, 32, 0, (cudaStream_t)stream>>>(c, a, b, at_a, at_b,
                                                       at_c);
}

void layout_matrices(void *stream, unsigned *out, const int *from,
                     bool transposed)
{
    matrices_kernel<<<1, 32, 0, (cudaStream_t)stream>>>(out, from, transposed);
}
