// current.c - the model for which the calling thread works.

#include "model/cuda/kernels_cuda.h"

#include "base/base.h"

static _Thread_local const struct cuda_model *current;

void cuda_begin(const struct cuda_model *m)
{
    current = m;
}

void cuda_end(void)
{
    current = NULL;
}

const struct cuda_model *cuda_current(void)
{
    CHECK(current);
    return current;
}
