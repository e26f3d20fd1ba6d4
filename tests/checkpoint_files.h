// checkpoint_files.h - what the tests of checkpoints share: one tiny model, its
// file as others would write it, and what reading must then do.

#ifndef TESTS_CHECKPOINT_FILES_H
#define TESTS_CHECKPOINT_FILES_H

#include "model/checkpoint.h"

enum { MAX_FILE = 1 << 16, MAX_PARAMS = 1 << 12 };

extern const struct model_config tiny;

// The one file of every test, in a folder of its own. Group fixtures.
extern char folder[], path[128];
int make_folder(void **state);
int remove_folder(void **state);
int files_in_folder(void);

// A file's bytes, to be spoilt.
struct bytes {
    size_t n;
    char at[MAX_FILE];
};

void load(struct bytes *b);
void store(const struct bytes *b);
void append(struct bytes *b, const void *from, size_t n);

// The same n numbers for the same key.
void numbers(float *p, size_t n, uint64_t key);

// The tiny model with numbers of key 1, by checkpoint_write().
void write_tiny(float *p);

// Reading fails, says `says` in one line, and leaves the numbers alone.
void refused(const struct model_config *c, const char *says);

// Reading the tiny model gives these numbers.
void accepted(const float *expected);

struct entry {
    const char *name, *dtype, *shape;
    const void *data;
    size_t bytes;
};

// The tiny model's tensors in any dtype and under a prefix, `more` entries
// behind them, as Hugging Face's writer would lay them. expected[] is what
// reading must give.
void build_model(const char *dtype, const char *prefix,
                 const struct entry *more, int nmore, float *expected);

// A model as llm.c lays it: (out, in), all layers of a kind together.
void build_llmc(const struct model_config *c, int version, int padded,
                const float *p);

#endif
