// data.h - text or token shards in, this rank's batches out.
//
// The training tokens are cut into windows of T (and their T targets, one to
// the right); an epoch visits every window once, in an order that is a function
// of (seed, epoch), and drops the tail that does not fill a step of all ranks.
// With G = world * accum * B windows a step, micro-batch a of rank r takes
//
//     order[step * G + a * world * B + r * B ..  + B)
//
// so that n ranks with batch b see, in a step, what one rank with n*b sees.
// A thread of its own prepares batches ahead of the loop.
//
// What a file is: an llm.c shard if it begins with 20240520, else nanoGPT's
// 16-bit tokens if its name ends in .bin, else text.

#ifndef DATA_DATA_H
#define DATA_DATA_H

#include <stddef.h>
#include <stdint.h>

enum data_symbols { DATA_BYTES, DATA_CHARS };

struct data_config {
    const char *path;  // text, nanoGPT .bin, llm.c shard, a folder with
                       // train.bin and val.bin; "" for the C headers
    const char *vocab; // vocab.bpe: encode text with GPT-2's BPE; "" for none
    enum data_symbols symbols; // of text without a vocab
    double val_fraction;       // of the tokens, from the end; 0 for none; a
                               // folder's val.bin is taken whole
    int batch, tokens, accum;  // B, T, micro-batches a step
    int rank, world;
    uint64_t seed;
    size_t max_bytes; // of the default text: 4 MiB
};

struct data_info {
    size_t vocab_size; // symbols that the tokens can name; of a .bin without
                       // a vocab: its largest token + 1
    size_t train_tokens, val_tokens;
    size_t steps_per_epoch;
    uint64_t hash;      // of the tokens and how they were split
    const char *source; // what was read, for people; owned by the data
};

struct data;

// Read, tokenise, split, start the loader. 0, or -1 after fail().
int data_open(struct data **d, const struct data_config *c);
void data_close(struct data **d);
void data_info(const struct data *d, struct data_info *out);

// Where training begins: step counts from 0 over all epochs. Before the first
// data_next() (0 is the default), or any time after: the loader starts anew.
int data_seek(struct data *d, uint64_t step);

// The next micro-batch: x and y are (B, T), filled by the call.
int data_next(struct data *d, int32_t *x, int32_t *y);

// Validation batch i of this rank: batches are cut from the start of the
// validation tokens, `world` * B windows each. Returns 1, or 0 past the end.
int data_val(const struct data *d, size_t i, int32_t *x, int32_t *y);

// ---- tokens as text

// Encode text with the data's symbols into at most max tokens (caller's
// array); returns how many, or -1 after fail() if a symbol is unknown or more
// than max are needed.
long data_encode(const struct data *d, const char *text, size_t n,
                 int32_t *tokens, size_t max);

// Bytes of one token, appended to out (at most 256). Returns how many.
size_t data_decode(const struct data *d, int32_t token, char out[256]);

// The symbols as text, to be stored beside a checkpoint, and back: a sampler
// needs no training data. Caller frees with free(); NULL after fail().
char *data_symbols_save(const struct data *d);
int data_symbols_load(struct data **d, const char *saved);

#endif
