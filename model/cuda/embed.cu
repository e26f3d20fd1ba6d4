// embed.cu - tokens to vectors: a row of wte plus the position's row of wpe.
//
// A token may occur in many rows. Backward gets the rows sorted by token
// (model/cuda/model_cuda.c), and a block adds up the rows of one token in
// order. There are no atomics, and every run has the same bits.

#include "model/cuda/launch.cuh"
#include "model/cuda/mask.cuh"

// A thread loads AHEAD rows of a token at once, because a common token has
// thousands of rows, which must be added up in order.
enum { THREADS = 256, TOKEN_THREADS = 64, AHEAD = 8 };

// out = mask(v + wpe) for pack i of four numbers.
template <typename T>
__device__ inline void put_places(T *out, float v[4], const T *wpe, size_t i,
                                  int tokens, int C, const struct mask &mask)
{
    size_t row = mask_place(mask, i * 4 / C), c = i * 4 % C;
    float place[4];
    load4(place, wpe + row % tokens * C + c);
    uint32_t key = mask.threshold ? mask_row(mask, row) : 0;
    for (int k = 0; k < 4; k++) {
        v[k] += place[k];
        if (mask.threshold)
            v[k] *= mask_at(mask, key, (uint32_t)c + k);
    }
    store4(out + i * 4, v);
}

template <typename T>
__global__ void embed_kernel(T *out, const T *wte, const T *wpe,
                             const int32_t *x, size_t rows, int tokens, int C,
                             struct mask mask)
{
    size_t packs = rows * (size_t)C / 4;
    for (size_t i = thread_first(); i < packs; i += thread_stride()) {
        float v[4];
        load4(v, wte + (size_t)x[i * 4 / C] * C + i * 4 % C);
        put_places(out, v, wpe, i, tokens, C, mask);
    }
}

template <typename T>
__global__ void words_kernel(float *out, const T *wte, const int32_t *x,
                             struct words here, size_t rows, int C)
{
    size_t packs = rows * (size_t)C / 4;
    for (size_t i = thread_first(); i < packs; i += thread_stride()) {
        size_t row = i * 4 / C, c = i * 4 % C;
        int word = x[row] - here.first;
        float v[4] = {0, 0, 0, 0};
        if (word >= 0 && word < here.n)
            load4(v, wte + (size_t)word * C + c);
        store4(out + i * 4, v);
    }
}

template <typename T>
__global__ void places_after_kernel(T *out, const float *words, const T *wpe,
                                    size_t rows, int tokens, int C,
                                    struct mask mask)
{
    size_t packs = rows * (size_t)C / 4;
    for (size_t i = thread_first(); i < packs; i += thread_stride()) {
        float v[4];
        load4(v, words + i * 4);
        put_places(out, v, wpe, i, tokens, C, mask);
    }
}

__device__ inline void add_numbers(float sum[4], const float d[4], size_t row,
                                   int c, const struct mask &mask)
{
    uint32_t key = mask.threshold ? mask_row(mask, mask_place(mask, row)) : 0;
    for (int k = 0; k < 4; k++)
        sum[k] +=
            mask.threshold ? d[k] * mask_at(mask, key, (uint32_t)c + k) : d[k];
}

template <typename T>
__device__ inline void add_row(float sum[4], const T *dout, size_t row, int c,
                               int C, const struct mask &mask)
{
    float d[4];
    load4(d, dout + row * C + c);
    add_numbers(sum, d, row, c, mask);
}

// A block computes some channels of one token's row of dwte. It adds to the
// head's gradient, which is in dwte already.
template <typename T>
__global__ void tokens_kernel(float *dwte, const T *dout,
                              struct cuda_tokens tokens, int C,
                              struct mask mask)
{
    int from = tokens.start[blockIdx.x], to = tokens.start[blockIdx.x + 1];
    int c = (int)(blockIdx.y * TOKEN_THREADS + threadIdx.x) * 4, i = from;
    if (c >= C)
        return;
    float *row = dwte + (size_t)tokens.token[blockIdx.x] * C + c;
    float sum[4] = {0, 0, 0, 0}, old[4];
    load4(old, row);
    for (; i + AHEAD <= to; i += AHEAD) {
        float d[AHEAD][4];
#pragma unroll
        for (int k = 0; k < AHEAD; k++)
            load4(d[k], dout + (size_t)tokens.order[i + k] * C + c);
#pragma unroll
        for (int k = 0; k < AHEAD; k++)
            add_numbers(sum, d[k], (size_t)tokens.order[i + k], c, mask);
    }
    for (; i < to; i++)
        add_row(sum, dout, (size_t)tokens.order[i], c, C, mask);
    for (int k = 0; k < 4; k++)
        sum[k] += old[k];
    store4(row, sum);
}

// The worker's own token at a position of its sequences; -1: another worker has
// it.
__device__ inline int token_at(const struct zigzag &z, int place)
{
#pragma unroll
    for (int k = 0; k < ZIGZAG_PIECES; k++) {
        int i = place - z.run[k].first;
        if (i >= 0 && i < z.run[k].n)
            return z.run[k].at + i;
    }
    return z.own ? -1 : place;
}

// A block computes one position's row of dwpe.
template <typename T>
__global__ void places_kernel(float *dwpe, const T *dout, int B, int C,
                              bool add, struct mask mask)
{
    size_t place = blockIdx.x;
    int own = mask.place.own ? mask.place.own : (int)gridDim.x;
    int t = token_at(mask.place, (int)place);
    for (int c = (int)threadIdx.x * 4; c < C; c += (int)blockDim.x * 4) {
        float sum[4] = {0, 0, 0, 0};
        if (add)
            load4(sum, dwpe + place * C + c);
        for (int b = 0; t >= 0 && b < B; b++)
            add_row(sum, dout, (size_t)b * own + t, c, C, mask);
        store4(dwpe + place * C + c, sum);
    }
}

void cuda_embed(void *out, const void *wte, const void *wpe, const int32_t *x,
                size_t rows, int T, int C, const struct mask *mask)
{
    struct mask m = *mask;
    launch([=](auto number, cudaStream_t queue) {
        typedef decltype(number) real;
        embed_kernel<<<blocks_for(rows * C / 4, THREADS), THREADS, 0, queue>>>(
            (real *)out, (const real *)wte, (const real *)wpe, x, rows, T, C,
            m);
    });
}

void cuda_embed_words(float *out, const void *wte, const int32_t *x,
                      struct words here, size_t rows, int C)
{
    launch([=](auto number, cudaStream_t queue) {
        typedef decltype(number) real;
        words_kernel<<<blocks_for(rows * C / 4, THREADS), THREADS, 0, queue>>>(
            out, (const real *)wte, x, here, rows, C);
    });
}

void cuda_embed_places(void *out, const float *words, const void *wpe,
                       size_t rows, int T, int C, const struct mask *mask)
{
    struct mask m = *mask;
    launch([=](auto number, cudaStream_t queue) {
        typedef decltype(number) real;
        places_after_kernel<<<blocks_for(rows * C / 4, THREADS), THREADS, 0,
                              queue>>>((real *)out, words, (const real *)wpe,
                                       rows, T, C, m);
    });
}

// The rows by token come from cuda_tokens_sort().
void cuda_embed_backward(float *dwte, float *dwpe, const void *dout,
                         const int32_t *x, struct words here, size_t rows,
                         int T, int C, bool add, const struct mask *mask)
{
    struct mask m = *mask;
    struct cuda_tokens t = cuda_current()->tokens;
    int B = (int)(rows / (size_t)(m.place.own ? m.place.own : T));
    (void)x, (void)here;
    launch([=](auto number, cudaStream_t queue) {
        typedef decltype(number) real;
        const real *d = (const real *)dout;
        if (t.kinds) // a slice may have none
            tokens_kernel<<<dim3((unsigned)t.kinds,
                                 blocks_for((size_t)C, TOKEN_THREADS * 4)),
                            TOKEN_THREADS, 0, queue>>>(dwte, d, t, C, m);
        places_kernel<<<(unsigned)T, THREADS, 0, queue>>>(dwpe, d, B, C, add,
                                                          m);
    });
}
