// safetensors.h - read the container format of Hugging Face's checkpoints.
//
//     u64 N | N bytes of JSON: name -> dtype, shape, [begin, end) | data
//
// The tensors tile the data without hole or overlap, up to the end of the file.
// All of that is checked on opening; data is read, and judged, as asked for.

#ifndef MODEL_SAFETENSORS_H
#define MODEL_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

enum { SAFETENSORS_MAX_DIMS = 8 };

struct safetensors_tensor {
    const char *name;
    const char *dtype; // as the file spells it: "F32"
    int ndim;
    size_t shape[SAFETENSORS_MAX_DIMS];
    uint64_t begin, end; // bytes from the start of the data
    size_t n;            // elements
};

struct safetensors;

// 0, or -1 after fail() that names the file and what is wrong with it.
int safetensors_open(struct safetensors **s, const char *path);
void safetensors_close(struct safetensors **s);

int safetensors_count(const struct safetensors *s);
const struct safetensors_tensor *safetensors_at(const struct safetensors *s,
                                                int i);

// NULL if there is none of that name; of metadata, its value.
const struct safetensors_tensor *safetensors_find(const struct safetensors *s,
                                                  const char *name);
const char *safetensors_metadata(const struct safetensors *s, const char *key);

// Elements [first, first + n) of t as floats into out; t is F32, F16, BF16 or
// F64. Numbers that are not finite are errors.
int safetensors_read(const struct safetensors *s,
                     const struct safetensors_tensor *t, size_t first, size_t n,
                     float *out);

#endif
