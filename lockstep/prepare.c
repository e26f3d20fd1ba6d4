// prepare.c - `lockstep prepare TEXT out=FOLDER` encodes a large text once.

#include "lockstep/commands.h"

#include "base/base.h"
#include "config/keys.h"
#include "data/prepare_text.h"

#include <stddef.h>

struct settings {
    char out[CONFIG_PATH], vocab[CONFIG_PATH];
    double val_fraction;
};

#define AT(member) offsetof(struct settings, member), false

static const struct key rows[] = {
    {"prepare", "out", "", KEY_TEXT, AT(out), .unit = "path",
     .help = "the folder to write: train.bin, val.bin and symbols.txt"},
    {"prepare", "vocab", "bytes", KEY_TEXT, AT(vocab), .unit = "path",
     .help = "the tokens: bytes, chars, or a file: vocab.bpe of GPT-2, or a "
             "vocab.txt of BERT"},
    {"prepare", "val_fraction", "0.1", KEY_NUMBER, AT(val_fraction),
     .min = 1e-6, .max = 0.9, .unit = "share",
     .help = "share of the tokens, from the end, for val.bin"},
};

static const struct key_table keys = {rows, sizeof rows / sizeof *rows,
                                      "lockstep prepare --help"};

static void explain(FILE *f)
{
    fprintf(f, "lockstep prepare TEXT out=FOLDER [key=value] ...\n\n"
               "Encodes a text once, so that training with data=FOLDER only "
               "maps its tokens. The\ntokens are those that data=TEXT gives. "
               "The text may be larger than memory.\n");
    key_help(f, &keys);
    fprintf(f, "\n  lockstep prepare wiki.txt vocab=vocab.bpe out=wiki\n"
               "  lockstep train data=wiki model=gpt2\n");
}

static int prepare(int nwords, char **words)
{
    struct settings s;
    struct prepared done;
    key_defaults(&keys, &s);
    if (key_words(&keys, &s, nwords - 1, words + 1))
        return -1;
    if (!s.out[0])
        return fail("prepare: the folder is missing; try: out=FOLDER");
    struct prepare_config c = {
        .text = words[0],
        .folder = s.out,
        .vocab = s.vocab,
        .val_fraction = s.val_fraction,
    };
    if (prepare_text(&c, &done))
        return -1;
    printf("%s: %zu tokens to train, %zu to validate, of %zu different ones "
           "(use: data=%s)\n",
           s.out, done.train, done.val, done.symbols, s.out);
    return 0;
}

const struct command command_prepare = {
    .name = "prepare",
    .words = "TEXT out=FOLDER",
    .help = "encode a large text once, for data=FOLDER",
    .explain = explain,
    .least = 1,
    .run = prepare,
};
