// checkpoint.h - model weights in files that others read and write.
//
//     model.safetensors   Hugging Face's GPT-2 names and shapes, fp32
//     llm.c .bin          version 3 (fp32) and 5 (bf16), read only
//
// An optimiser's slots are vectors with the layout of the parameters. They are
// in a file of their own, so that the model's file is a plain GPT-2. The whole
// of a file is checked before any of its numbers is used.

#pragma once

#include "model/model.h"

#include <sys/types.h>

// Writes params (model_nparams(c) floats) to `path`. One rename after fsync
// replaces the file, so a reader finds the whole old file or the whole new one.
// Returns 0, or -1 after fail(); then no partial file is left.
int checkpoint_write(const char *path, const struct model_config *c,
                     const float *params);

// Writing a file by ranges. Several processes may write ranges, in any order.
// The file has nslots slots, whose tensors are named "<slot name>.<tensor
// name>"; with nslots 0 it has the parameters, which count as slot 0.
//
// checkpoint_make() creates the file with its header and its full size, but
// without numbers. A process then opens a writer, writes v[0, n) as elements
// [off, off + n) of a slot, as often as it needs, and closes the writer; `path`
// is borrowed until then. After checkpoint_sync() all that was written is on
// disk. All return 0, or -1 after fail().
struct checkpoint_writer {
    const char *path;
    int fd;
    off_t numbers; // the byte at which the numbers begin
};
int checkpoint_make(const char *path, const struct model_config *c, int nslots,
                    const char *const *slot_names);
int checkpoint_writer_open(struct checkpoint_writer *w, const char *path);
int checkpoint_write_range(const struct checkpoint_writer *w,
                           const struct model_config *c, int slot, size_t off,
                           const float *v, size_t n);
int checkpoint_writer_close(struct checkpoint_writer *w);
int checkpoint_sync(const char *path);

// Writes a config.json. With it beside model.safetensors, `transformers` opens
// the folder. Returns 0, or -1 after fail().
int checkpoint_write_config(const char *path, const struct model_config *c);

// Fills *out with the configuration that a file's tensor shapes imply. They do
// not show the number of heads. It comes from the first of these that exists:
// the metadata "heads", or llm.c's header; "n_head" of the config.json beside
// the file; channels / 64, as in all of OpenAI's models. If channels / 64 is no
// whole number, the number of heads is 0 (not known). The first bytes tell the
// two formats apart. Returns 0, or -1 after fail().
int checkpoint_config(const char *path, struct model_config *out);

// Fills params (model_nparams(c) floats) from a file, converting F16, BF16 and
// F64. Checks the whole file before it writes the first number. Returns 0, or
// -1 after fail() if a shape, or the number of heads in the file, is not c's;
// if a tensor is neither GPT-2's nor a slot's; or if a number is NaN or
// infinite.
int checkpoint_read(const char *path, const struct model_config *c,
                    float *params);

// Returns 1 if the file has a slot of that name, 0 if it has none or if there
// is no file, -1 after fail().
int checkpoint_has_slot(const char *path, const char *slot_name);

// Reading a file by ranges: its slots, or with nslots 0 its parameters, which
// count as slot 0. checkpoint_open() checks the whole file as checkpoint_read()
// does; path, c and slot_names are borrowed until close.
// checkpoint_read_range() reads elements [off, off + n) of a slot into v[0, n).
// Both return 0, or -1 after fail().
struct checkpoint;
int checkpoint_open(struct checkpoint **k, const char *path,
                    const struct model_config *c, int nslots,
                    const char *const *slot_names);
int checkpoint_read_range(const struct checkpoint *k, int slot, size_t off,
                          float *v, size_t n);
void checkpoint_close(struct checkpoint **k);
