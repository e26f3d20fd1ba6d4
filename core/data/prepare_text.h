// prepare_text.h - encodes a text once, into a folder that training maps.
//
//     FOLDER/train.bin, val.bin   16-bit tokens, as nanoGPT has them
//     FOLDER/symbols.txt          what they mean, as data_symbols_save() has it
//
// The tokens are those that training would make of the text itself. Memory does
// not grow with the text: it is read and encoded in pieces.

#pragma once

#include "data/data.h"

struct prepare_config {
    const char *text, *folder; // paths
    const char *vocab;         // "bytes", "chars", or a vocab.bpe or vocab.txt
    double val_fraction;       // share of the tokens, from the end
    size_t piece;              // bytes encoded at once; 0: 4 MiB
};

struct prepared {
    size_t train, val, symbols; // tokens of the files; different ones
};

// Writes the folder. 0, or -1 after fail(): no such text, tokens instead of
// text, a folder that has a train.bin already, a full disk. train.bin appears
// last, and only if all is complete.
int prepare_text(const struct prepare_config *c, struct prepared *out);
