// llmc.h - read the model files of llm.c (train_gpt2.py writes them).
//
//     int32 header[256] | 16 tensors, each for all layers: fp32 or bf16
//
// Matrices are stored (out, in) and transposed on reading. wte has rows of
// padding after the vocabulary, which are skipped.

#pragma once

#include "model/model.h"

enum { LLMC_MODEL = 20240326 }; // the first int32 of a model file

struct llmc;

// Opens a file; its path is borrowed until close. Returns 0, or -1 after fail()
// if its header, version or length is wrong. llmc_close() sets *f to NULL.
int llmc_open(struct llmc **f, const char *path);
void llmc_close(struct llmc **f);

// The configuration in the header. model_check() has accepted it.
const struct model_config *llmc_config(const struct llmc *f);

// Reads elements [from, from + n) of tensor i of our layout into out. If out is
// NULL, it only checks. Checks the whole tensor. Returns 0, or -1 after fail(),
// for example if a number is not finite.
int llmc_read(const struct llmc *f, int i, size_t from, size_t n, float *out);
