// tokens_cuda.c - groups the rows of a batch by token, for the gradient of the
// embedding.
//
// A kind is a token that occurs and whose row of the embedding is here. Kinds
// come in the order of their first row, and the rows of a kind in the order of
// the batch. The host makes two passes over the batch, while the GPU computes
// forward.

#include "model/cuda/kernels_cuda.h"

int cuda_tokens_sort(int32_t *order, int32_t *start, int32_t *token,
                     int32_t *scratch, const int32_t *x, int n,
                     struct words here)
{
    int kinds = 0, rows = 0;
    start[0] = 0;
    // scratch[word]: 1 + index of its kind
    for (int i = 0; i < n; i++) {
        int word = x[i] - here.first;
        if (word < 0 || word >= here.n)
            continue;
        int32_t *kind = &scratch[word];
        rows++;
        if (!*kind) {
            token[kinds] = word;
            *kind = ++kinds;
            start[kinds] = 0;
        }
        start[*kind]++;
    }
    for (int k = 0; k < kinds; k++)
        start[k + 1] += start[k];
    // start[k + 1] counts down from the end of kind k
    for (int i = n - 1; i >= 0; i--) {
        int word = x[i] - here.first;
        if (word >= 0 && word < here.n)
            order[--start[scratch[word]]] = i;
    }
    for (int k = 0; k < kinds; k++) {
        start[k] = start[k + 1];
        scratch[token[k]] = 0;
    }
    start[kinds] = rows;
    return kinds;
}
