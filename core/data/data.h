// data.h - makes this rank's batches from text or token shards.
//
// The training tokens are cut into windows of T tokens; the T targets are the
// same tokens shifted by one. An epoch visits every window once, in an order
// that is a function of (seed, epoch). It drops the windows at the end that do
// not fill a step of all ranks. With G = world * accum * B windows in a step,
// micro-batch a of rank r takes
//
//     order[step * G + a * world * B + r * B ..  + B)
//
// So in a step, n ranks with batch b see the same windows as one rank with n*b.
// With random order the i-th window of the run begins at any token, as a
// function of (seed, i), and an epoch is only a number of steps.
// A thread prepares batches ahead of the loop.
//
// The kind of a file: it is an llm.c shard if it begins with the number
// 20240520; else nanoGPT's 16-bit tokens if its name ends in .bin; else text.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum data_order { DATA_EPOCH, DATA_RANDOM };

struct data_config {
    const char *path;  // text, nanoGPT .bin, llm.c shard, a folder with
                       // train.bin and val.bin; "" for the C headers
    const char *vocab; // tokens of a text: "bytes", "chars", or a vocab.bpe of
                       // GPT-2 or vocab.txt of BERT
    double val_fraction; // share of the tokens, from the end, that is for
                         // validation; 0: none; above 0 a folder's
                         // val.bin is used whole
    bool val_unused;     // data_val() will not be called: any length will do
    int batch, tokens, accum; // B, T, micro-batches of a step
    int rank, world;
    uint64_t seed;
    enum data_order order;
    bool same_draw;   // a mistake: all ranks take the windows of rank 0
    size_t max_bytes; // of the default text: 4 MiB
};

struct data_info {
    size_t vocab_size; // number of symbols; for a .bin without a vocab, the
                       // largest token + 1
    size_t train_tokens, val_tokens;
    size_t steps_per_epoch;
    uint64_t hash;      // of the tokens and how they were split
    const char *source; // what was read, for messages; owned by the data
};

struct data;

// Reads, tokenises, splits, starts the loader. 0, or -1 after fail().
int data_open(struct data **d, const struct data_config *c);
void data_close(struct data **d);
void data_info(const struct data *d, struct data_info *out);

// Sets the step of the next data_next(), counted from 0 over all epochs; at
// first it is 0. It can be called at any time: it starts the loader again. 0,
// or -1 after fail().
int data_seek(struct data *d, uint64_t step);

// Writes the next micro-batch to x and y, (B, T) each. 0, or -1 after fail().
int data_next(struct data *d, int32_t *x, int32_t *y);

// Writes validation batch i of this rank to x and y, (B, T) each. Batches are
// cut from the start of the validation tokens, world * B windows each. Returns
// 1, or 0 if there is no such batch.
int data_val(const struct data *d, size_t i, int32_t *x, int32_t *y);

// ---- tokens as text

// Encodes n bytes of text with the data's symbols into tokens[max]. Returns the
// number of tokens, or -1 after fail() if a symbol is unknown or max is too
// small.
long data_encode(const struct data *d, const char *text, size_t n,
                 int32_t *tokens, size_t max);

// Writes the bytes of one token, at most 256, to `out`. Returns their number.
size_t data_decode(const struct data *d, int32_t token, char out[256]);

// data_symbols_save() gives the symbols as text, for a file beside a
// checkpoint, so that a sampler needs no training data. The caller frees the
// text with free(). NULL after fail(). data_symbols_load() makes a struct data
// of the text, which has symbols and no batches. 0, or -1 after fail().
char *data_symbols_save(const struct data *d);
int data_symbols_load(struct data **d, const char *saved);
