// safetensors.h - read the container format of Hugging Face's checkpoints.
//
//     u64 N | N bytes of JSON: name -> dtype, shape, [begin, end) | data
//
// The tensors tile the data without hole or overlap, up to the end of the file.
// safetensors_open() checks all of that. safetensors_read() reads numbers, and
// checks that they are finite.

#pragma once

#include <stddef.h>

enum { SAFETENSORS_MAX_DIMS = 8 };

struct safetensors_tensor {
    const char *name;
    const char *dtype; // as the file spells it: "F32"
    int ndim;
    size_t shape[SAFETENSORS_MAX_DIMS];
    size_t begin, end; // bytes from the start of the data
    size_t n;          // elements
};

struct safetensors;

// `path` is borrowed until close. Returns 0, or -1 after fail(), whose message
// names the file and what is wrong with it. safetensors_close() sets *s to
// NULL.
int safetensors_open(struct safetensors **s, const char *path);
void safetensors_close(struct safetensors **s);

// The number of tensors, and tensor i in the order of their names. Tensors and
// metadata are valid until close.
int safetensors_count(const struct safetensors *s);
const struct safetensors_tensor *safetensors_at(const struct safetensors *s,
                                                int i);

// The tensor of that name, and the value of a metadata key; NULL if there is
// none.
const struct safetensors_tensor *safetensors_find(const struct safetensors *s,
                                                  const char *name);
const char *safetensors_metadata(const struct safetensors *s, const char *key);

// Reads elements [first, first + n) of t into out, as floats. If out is NULL,
// it only checks. Returns 0, or -1 after fail() if t is not F32, F16, BF16 or
// F64, or if a number is not finite.
int safetensors_read(const struct safetensors *s,
                     const struct safetensors_tensor *t, size_t first, size_t n,
                     float *out);
