// cudnn_operations.h - descriptors of the emulated cuDNN, and what operations
// on tensors compute.

#pragma once

#include <map>
#include <stdint.h>
#include <string.h>
#include <string>
#include <vector>

struct value {
    std::vector<unsigned char> bytes;
    int64_t n;
};

struct descriptor {
    int type; // enum dnn_descriptor
    bool finalized;
    int engine; // of a configuration or an engine
    std::map<int, value> set;
};

// Element i of an attribute; 0 where it was not set.
template <class T> inline T get(const descriptor *d, int name, int64_t i = 0)
{
    auto it = d->set.find(name);
    T x{};
    if (it != d->set.end())
        memcpy(&x, it->second.bytes.data() + (size_t)i * sizeof x, sizeof x);
    return x;
}

inline descriptor *member(const descriptor *d, int name, int64_t i = 0)
{
    return get<descriptor *>(d, name, i);
}

typedef std::vector<float> numbers; // of a tensor, by its dimensions

struct tensor {
    int64_t id, dim[4], stride[4], n;
    int type; // enum dnn_data
    bool is_virtual, by_value;
};

tensor tensor_of(const descriptor *d);

// From and to memory, which starts at `base`.
numbers tensor_read(const tensor &t, void *base);
void tensor_write(const tensor &t, void *base, const numbers &x);

struct operation {
    int type, mode;
    int64_t axis; // -1: none
    std::vector<tensor> in;
    tensor out;
};

operation operation_of(const descriptor *op);

// What is wrong with inputs and shapes; "" if nothing.
std::string operation_wrong(const operation &o);

numbers operation_compute(const operation &o, const std::vector<numbers> &in);
