// bpe.h - GPT-2's byte-pair encoding, for which its vocab.bpe is enough.
//
//     text -> words -> bytes of a word -> join the pair that is earliest in the
//     table, everywhere in the word, and repeat -> tokens
//
// Ids: 0..255 are the bytes, the printable ones first. 256 + i is the pair that
// line i of the table joins. The last id is <|endoftext|>. Source: Sennrich,
// Haddow, Birch (ACL 2016); with bytes instead of characters: Radford and
// others (2019).

#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
    BPE_BYTES = 256,
    BPE_LONGEST = 256,                  // bytes of a token
    BPE_MERGES = 65536 - BPE_BYTES - 1, // tokens are 16 bits
};
static const uint32_t BPE_NONE = UINT32_MAX;

struct bpe;

// Reads a table of n bytes. Errors begin with `name` and the line. 0, or -1
// after fail().
int bpe_open(struct bpe **b, const char *name, const char *text, size_t n);
void bpe_close(struct bpe **b);

// The number of tokens: bytes, merges and <|endoftext|>.
size_t bpe_size(const struct bpe *b);

// The token's *n bytes, borrowed. NULL and *n = 0 if there is no such token.
const char *bpe_token(const struct bpe *b, size_t token, size_t *n);

// bpe_byte() gives the token of one byte. bpe_join() gives the token that joins
// left and right, or BPE_NONE if no line joins them. The smaller of two such
// tokens is earlier in the table.
uint32_t bpe_byte(const struct bpe *b, unsigned char byte);
uint32_t bpe_join(const struct bpe *b, uint32_t left, uint32_t right);

// Writes the table in the format of vocab.bpe.
void bpe_write(const struct bpe *b, FILE *f);

// Encodes any n bytes. `out` must hold n tokens. Returns how many there are, or
// -1 after fail() if memory runs out. "<|endoftext|>" in a text is encoded like
// other text.
long bpe_encode(const struct bpe *b, const char *text, size_t n, uint16_t *out);

// The length in bytes of the first word of s[n], n > 0.
size_t bpe_word(const unsigned char *s, size_t n);
