// cudnn_operations.cpp - the operations of the emulated cuDNN, number by number,
// as cuDNN's header describes them.

#include "tests/emulated_cuda/cudnn_operations.h"

#include "base/half.h"
#include "model/cuda/dnn.h"
#include "tests/emulated_cuda/address.h"
#include "tests/emulated_cuda/block.h"

#include <math.h>

// ---- tensors

tensor tensor_of(const descriptor *d)
{
    tensor t = {};
    t.id = get<int64_t>(d, DNN_TENSOR_ID);
    t.type = get<int>(d, DNN_TENSOR_DATA);
    t.is_virtual = get<bool>(d, DNN_TENSOR_VIRTUAL);
    t.by_value = get<bool>(d, DNN_TENSOR_BY_VALUE);
    t.n = 1;
    for (int i = 0; i < 4; i++) {
        t.dim[i] = get<int64_t>(d, DNN_TENSOR_DIMENSIONS, i);
        t.stride[i] = get<int64_t>(d, DNN_TENSOR_STRIDES, i);
        t.n *= t.dim[i];
    }
    return t;
}

static tensor tensor_of(const descriptor *op, int name)
{
    return tensor_of(member(op, name));
}

// Where element i, counted in the order of the dimensions, is in memory.
static int64_t offset_of(const tensor &t, int64_t i)
{
    int64_t at = 0;
    for (int d = 3; d >= 0; i /= t.dim[d--])
        at += i % t.dim[d] * t.stride[d];
    return at;
}

// The element of `t` that goes with element i of `y`; a dimension of 1 repeats.
static int64_t repeated(const tensor &t, const tensor &y, int64_t i)
{
    int64_t at = 0, step = 1;
    for (int d = 3; d >= 0; step *= t.dim[d], i /= y.dim[d--])
        at += t.dim[d] == 1 ? 0 : i % y.dim[d] * step;
    return at;
}

static float rounded(float x, int type)
{
    return type == DNN_BFLOAT16 ? bf16_to_float(bf16_from_float(x))
           : type == DNN_HALF   ? f16_to_float(f16_from_float(x))
                                : x;
}

static size_t bytes_of(int type)
{
    return type == DNN_BFLOAT16 || type == DNN_HALF ? 2 : 4;
}

static void *address(const tensor &t, void *base, int64_t i)
{
    char *p = (char *)base + (size_t)offset_of(t, i) * bytes_of(t.type);
    if (emulated::forbidden(p, bytes_of(t.type)))
        emulated::stop("cuDNN: element %lld of tensor %lld leaves its memory",
                       (long long)i, (long long)t.id);
    return p;
}

numbers tensor_read(const tensor &t, void *base)
{
    numbers x((size_t)t.n);
    for (int64_t i = 0; i < t.n; i++) {
        const void *p = address(t, base, i);
        x[(size_t)i] = t.type == DNN_BFLOAT16
                           ? bf16_to_float(*(const uint16_t *)p)
                       : t.type == DNN_HALF ? f16_to_float(*(const uint16_t *)p)
                                            : *(const float *)p;
    }
    return x;
}

void tensor_write(const tensor &t, void *base, const numbers &x)
{
    for (int64_t i = 0; i < t.n; i++) {
        void *p = address(t, base, i);
        if (t.type == DNN_BFLOAT16)
            *(uint16_t *)p = bf16_from_float(x[(size_t)i]);
        else if (t.type == DNN_HALF)
            *(uint16_t *)p = f16_from_float(x[(size_t)i]);
        else
            *(float *)p = x[(size_t)i];
    }
}

// ---- operations

operation operation_of(const descriptor *op)
{
    operation o = {op->type, 0, -1, {}, {}};
    if (op->type == DNN_OP_MATMUL) {
        o.in = {tensor_of(op, DNN_OP_MATMUL_A), tensor_of(op, DNN_OP_MATMUL_B)};
        o.out = tensor_of(op, DNN_OP_MATMUL_C);
    } else if (op->type == DNN_OP_REDUCTION) {
        o.mode =
            get<int>(member(op, DNN_OP_REDUCTION_DESC), DNN_REDUCTION_OPERATOR);
        o.in = {tensor_of(op, DNN_OP_REDUCTION_X)};
        o.out = tensor_of(op, DNN_OP_REDUCTION_Y);
    } else if (op->type == DNN_OP_RESHAPE) {
        o.in = {tensor_of(op, DNN_OP_RESHAPE_X)};
        o.out = tensor_of(op, DNN_OP_RESHAPE_Y);
    } else {
        const descriptor *how = member(op, DNN_OP_POINTWISE_DESC);
        o.mode = get<int>(how, DNN_POINTWISE_MODE);
        if (how->set.count(DNN_POINTWISE_AXIS))
            o.axis = get<int64_t>(how, DNN_POINTWISE_AXIS);
        for (int name :
             {DNN_OP_POINTWISE_X, DNN_OP_POINTWISE_B, DNN_OP_POINTWISE_T})
            if (op->set.count(name))
                o.in.push_back(tensor_of(op, name));
        o.out = tensor_of(op, DNN_OP_POINTWISE_Y);
    }
    return o;
}

static size_t inputs(int mode)
{
    switch (mode) {
    case DNN_EXP:
    case DNN_LOG:
    case DNN_INDEX:
        return 1;
    case DNN_SELECT:
        return 3;
    default:
        return 2;
    }
}

static bool same_or_one(const tensor &t, const tensor &y)
{
    for (int d = 0; d < 4; d++)
        if (t.dim[d] != y.dim[d] && t.dim[d] != 1)
            return false;
    return true;
}

std::string operation_wrong(const operation &o)
{
    const tensor &x = o.in[0], &y = o.out;
    if (o.type == DNN_OP_MATMUL) {
        const tensor &b = o.in[1];
        bool fit = x.dim[3] == b.dim[2] && y.dim[2] == x.dim[2] &&
                   y.dim[3] == b.dim[3];
        for (int d = 0; d < 2; d++)
            fit = fit && x.dim[d] == y.dim[d] && b.dim[d] == y.dim[d];
        return fit ? "" : "shapes of a product";
    }
    if (o.type == DNN_OP_REDUCTION)
        return same_or_one(y, x) ? "" : "shapes of a reduction";
    if (o.type == DNN_OP_RESHAPE)
        return x.n == y.n ? "" : "shapes of a reshape";
    if (o.in.size() != inputs(o.mode))
        return "inputs of a pointwise operation";
    if ((o.mode == DNN_INDEX) != (o.axis >= 0) || o.axis > 3)
        return "an axis";
    if ((o.mode == DNN_GE) != (y.type == DNN_BOOLEAN))
        return "a boolean";
    for (const tensor &t : o.in)
        if (!same_or_one(t, y))
            return "shapes of a pointwise operation";
    return "";
}

static float point(const operation &o, int64_t i, const float v[3])
{
    const tensor &y = o.out;
    for (int d = 3; o.mode == DNN_INDEX && d > o.axis; d--)
        i /= y.dim[d];
    switch (o.mode) {
    case DNN_ADD:
        return v[0] + v[1];
    case DNN_SUB:
        return v[0] - v[1];
    case DNN_MUL:
        return v[0] * v[1];
    case DNN_DIV:
        return v[0] / v[1];
    case DNN_EXP:
        return expf(v[0]);
    case DNN_LOG:
        return logf(v[0]);
    case DNN_GE:
        return v[0] >= v[1];
    case DNN_INDEX:
        return (float)(i % y.dim[o.axis]);
    default: // DNN_SELECT
        return v[2] != 0 ? v[0] : v[1];
    }
}

static void multiply(const operation &o, const std::vector<numbers> &in,
                     numbers *out)
{
    int64_t m = o.out.dim[2], n = o.out.dim[3], k = o.in[0].dim[3];
    for (int64_t at = 0; at < o.out.n; at++) {
        int64_t batch = at / (m * n), row = at / n % m, column = at % n;
        float sum = 0;
        for (int64_t x = 0; x < k; x++)
            sum += in[0][(size_t)((batch * m + row) * k + x)] *
                   in[1][(size_t)((batch * k + x) * n + column)];
        (*out)[(size_t)at] = sum;
    }
}

static void reduce(const operation &o, const numbers &x, numbers *out)
{
    bool max = o.mode == DNN_MAX;
    out->assign(out->size(), max ? -INFINITY : 0);
    for (int64_t i = 0; i < o.in[0].n; i++) {
        float *y = &(*out)[(size_t)repeated(o.out, o.in[0], i)];
        *y = max ? fmaxf(*y, x[(size_t)i]) : *y + x[(size_t)i];
    }
}

// Elements stay where they are in memory.
static void reshape(const operation &o, const numbers &x, numbers *out)
{
    std::map<int64_t, float> memory;
    for (int64_t i = 0; i < o.in[0].n; i++)
        memory[offset_of(o.in[0], i)] = x[(size_t)i];
    for (int64_t i = 0; i < o.out.n; i++) {
        auto it = memory.find(offset_of(o.out, i));
        if (it == memory.end())
            emulated::stop("cuDNN: a reshape leaves its memory");
        (*out)[(size_t)i] = it->second;
    }
}

numbers operation_compute(const operation &o, const std::vector<numbers> &in)
{
    numbers out((size_t)o.out.n);
    if (o.type == DNN_OP_MATMUL)
        multiply(o, in, &out);
    else if (o.type == DNN_OP_REDUCTION)
        reduce(o, in[0], &out);
    else if (o.type == DNN_OP_RESHAPE)
        reshape(o, in[0], &out);
    else
        for (int64_t i = 0; i < o.out.n; i++) {
            float v[3] = {0, 0, 0};
            for (size_t k = 0; k < in.size(); k++)
                v[k] = in[k][(size_t)repeated(o.in[k], o.out, i)];
            out[(size_t)i] = point(o, i, v);
        }
    for (float &x : out)
        x = rounded(x, o.out.type);
    return out;
}
