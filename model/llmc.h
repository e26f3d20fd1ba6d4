// llmc.h - read the model files of llm.c (train_gpt2.py writes them).
//
//     int32 header[256] | 16 tensors, each for all layers: fp32 or bf16
//
// Matrices lie (out, in) and are transposed on reading; wte has rows of padding
// behind the vocabulary, which are passed over.

#ifndef MODEL_LLMC_H
#define MODEL_LLMC_H

#include "model/model.h"

enum { LLMC_MODEL = 20240326 }; // the first int32 of a model file

struct llmc;

// 0, or -1 after fail(): header, version and the file's length are right.
int llmc_open(struct llmc **f, const char *path);
void llmc_close(struct llmc **f);

// What the header says; it passed model_check().
const struct model_config *llmc_config(const struct llmc *f);

// Elements [from, from + n) of tensor i of our layout into out; with out NULL
// none. The whole tensor is judged: numbers that are not finite are errors.
int llmc_read(const struct llmc *f, int i, size_t from, size_t n, float *out);

#endif
