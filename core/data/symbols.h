// symbols.h - the meaning of tokens: bytes, characters, GPT-2's byte pairs, or
// BERT's pieces of words.
//
// Shards hold only numbers: without a vocab their meaning is unknown.

#pragma once

#include "data/bpe.h"
#include "data/wordpiece.h"

#include <stddef.h>
#include <stdint.h>

enum symbols_kind {
    SYMBOLS_NONE,
    SYMBOLS_BYTES,
    SYMBOLS_CHARS,
    SYMBOLS_BPE,
    SYMBOLS_PIECES,
};

struct symbols {
    enum symbols_kind kind;
    size_t n;                 // number of tokens
    uint32_t *code;           // SYMBOLS_CHARS: n code points in ascending order
    struct bpe *bpe;          // SYMBOLS_BPE
    struct wordpiece *pieces; // SYMBOLS_PIECES
};

// Make symbols of a kind: n tokens without meaning; what vocab= says: "bytes"
// (or ""), "chars", which are those that occur in a text of n bytes, or a file;
// a vocab.bpe of GPT-2 or a vocab.txt of BERT. 0, or -1 after fail().
int symbols_none(struct symbols *s, size_t n);
int symbols_open(struct symbols *s, const char *vocab, const char *text,
                 size_t n);
int symbols_vocab(struct symbols *s, const char *path);

// Whether vocab= names a file.
bool symbols_have_file(const char *vocab);

void symbols_close(struct symbols *s);

// How many of the symbols are bytes that are no part of valid UTF-8.
size_t symbols_lost(const struct symbols *s);

// As data_encode() and data_decode(); `out` must hold n tokens.
long symbols_encode(const struct symbols *s, const char *text, size_t n,
                    uint16_t *out);
size_t symbols_decode(const struct symbols *s, int32_t token, char out[256]);

// As data_symbols_save() and data_symbols_load().
char *symbols_save(const struct symbols *s);
int symbols_load(struct symbols *s, const char *saved);
