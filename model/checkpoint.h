// checkpoint.h - model weights in files that others read and write.
//
//     model.safetensors   Hugging Face's GPT-2 names and shapes, fp32
//     llm.c .bin          version 3 (fp32) and 5 (bf16), read only
//
// An optimiser's slots are vectors laid out like the parameters; they go into a
// file of their own, so that the model's file holds a GPT-2 and nothing else.
// Foreign files are validated whole before a byte is believed.

#ifndef MODEL_CHECKPOINT_H
#define MODEL_CHECKPOINT_H

#include "model/model.h"

#include <sys/types.h>

// Write `params` to `path`, which is replaced in one rename after fsync: a
// reader finds the old file or the new one, whole. 0, or -1 after fail(), then
// nothing is left behind.
int checkpoint_write(const char *path, const struct model_config *c,
                     const float *params);

// A file of nslots slots, their tensors named "<slot name>.<tensor name>", or
// with nslots 0 of the parameters, by ranges, which several processes may write
// in any order. make: the file of its full size, the numbers still to come.
// writer_open and _close: around the ranges that one process writes; `path`
// must live as long. write_range: elements [off, off + n) of a slot; parameters
// are slot 0. sync: all that was written is on disk. 0, or -1 after fail().
struct checkpoint_writer {
    const char *path;
    int fd;
    off_t numbers; // where they begin
};
int checkpoint_make(const char *path, const struct model_config *c, int nslots,
                    const char *const *slot_names);
int checkpoint_writer_open(struct checkpoint_writer *w, const char *path);
int checkpoint_write_range(const struct checkpoint_writer *w,
                           const struct model_config *c, int slot, size_t off,
                           const float *v, size_t n);
int checkpoint_writer_close(struct checkpoint_writer *w);
int checkpoint_sync(const char *path);

// The config.json with which `transformers` opens the folder it lies in.
int checkpoint_write_config(const char *path, const struct model_config *c);

// The configuration that a file's tensor shapes imply. Heads are metadata
// "heads" or the header of llm.c; else "n_head" of the config.json beside it;
// else channels / 64 as in all of OpenAI's models; else 0: not known. Tells the
// two formats apart by their first bytes. 0, or -1 after fail().
int checkpoint_config(const char *path, struct model_config *out);

// Fill params (model_nparams(c) floats), converting F16, BF16 and F64. Shapes
// must be c's, and heads where the file tells them; a tensor that is neither
// GPT-2's nor a slot's, NaN and infinity are errors. The whole file is judged
// before the first number is written.
int checkpoint_read(const char *path, const struct model_config *c,
                    float *params);

// Whether a file has a slot of that name: 1, or 0, also where there is no file;
// -1 after fail().
int checkpoint_has_slot(const char *path, const char *slot_name);

// The slots of a file, or with nslots 0 its parameters, by ranges. open: the
// whole file is judged as by checkpoint_read(). c and slot_names are borrowed
// until close. Parameters are slot 0. 0, or -1 after fail().
struct checkpoint;
int checkpoint_open(struct checkpoint **k, const char *path,
                    const struct model_config *c, int nslots,
                    const char *const *slot_names);
int checkpoint_read_range(const struct checkpoint *k, int slot, size_t off,
                          float *v, size_t n);
void checkpoint_close(struct checkpoint **k);

#endif
