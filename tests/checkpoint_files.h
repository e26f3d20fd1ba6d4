// checkpoint_files.h - shared by the tests of checkpoints: a tiny model, its
// file as other programs write it, and checks of what reading does.

#pragma once

#include "model/checkpoint.h"

enum { MAX_FILE = 1 << 16, MAX_PARAMS = 1 << 12 };

extern const struct model_config tiny;

// `path` is the file that every test uses, in the temporary folder `folder`.
// make_folder() and remove_folder() are a group's setup and teardown.
// files_in_folder() counts the files there.
extern char folder[], path[128];
int make_folder(void **state);
int remove_folder(void **state);
int files_in_folder(void);

// The bytes of a file, for a test to change.
struct bytes {
    size_t n;
    char at[MAX_FILE];
};

void load(struct bytes *b);
void store(const struct bytes *b);
void append(struct bytes *b, const void *from, size_t n);

// Fills p with n random numbers, always the same for a key.
void numbers(float *p, size_t n, uint64_t key);

// Writes the tiny model, with numbers of key 1, by checkpoint_write(). p gets
// its parameters.
void write_tiny(float *p);

// Asserts that reading fails with a message of one line that has `says` in it,
// and does not change the parameters.
void refused(const struct model_config *c, const char *says);

// Asserts that reading the tiny model gives these parameters.
void accepted(const float *expected);

struct entry {
    const char *name, *dtype, *shape;
    const void *data;
    size_t bytes;
};

// Writes the tiny model's tensors in this dtype, with this prefix before their
// names, and then nmore entries `more`, in the layout of Hugging Face's writer.
// expected[] gets the parameters that reading must give.
void build_model(const char *dtype, const char *prefix,
                 const struct entry *more, int nmore, float *expected);

// Writes a model in the layout of llm.c: matrices are (out, in), and a tensor
// of all layers is contiguous. padded: llm.c's padded size of the vocabulary.
void build_llmc(const struct model_config *c, int version, int padded,
                const float *p);
