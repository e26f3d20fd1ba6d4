// bpe.h - GPT-2's byte-pair encoding, from its vocab.bpe alone.
//
//     text -> words -> bytes of a word -> join the pair that stands earliest in
//     the table, everywhere in the word, again and again -> tokens
//
// Ids: 0..255 are the bytes, printable ones first; 256 + i is what line i of
// the table joins; the last is <|endoftext|>. Sennrich, Haddow, Birch (ACL
// 2016); bytes instead of characters: Radford and others (2019).

#ifndef DATA_BPE_H
#define DATA_BPE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
    BPE_BYTES = 256,
    BPE_LONGEST = 256,                  // bytes of a token
    BPE_MERGES = 65536 - BPE_BYTES - 1, // tokens are 16 bits
    BPE_NONE = 0xffffffff,
};

struct bpe;

// Read a table of n bytes; `name` is for messages, which name the line. 0, or
// -1 after fail().
int bpe_open(struct bpe **b, const char *name, const char *text, size_t n);
void bpe_close(struct bpe **b);

// Bytes, merges and <|endoftext|>.
size_t bpe_size(const struct bpe *b);

// The token's bytes, borrowed; *n = 0 for none of ours.
const char *bpe_token(const struct bpe *b, size_t token, size_t *n);

// The token of one byte, and what two tokens join to, or BPE_NONE. A smaller
// result stands earlier in the table.
uint32_t bpe_byte(const struct bpe *b, unsigned char byte);
uint32_t bpe_join(const struct bpe *b, uint32_t left, uint32_t right);

// The table as vocab.bpe has it.
void bpe_write(const struct bpe *b, FILE *f);

// Encode any n bytes; `out` has room for n tokens. Returns how many, or -1
// after fail() when memory runs out. <|endoftext|> in a text is but text.
long bpe_encode(const struct bpe *b, const char *text, size_t n, uint16_t *out);

// How many of n > 0 bytes the first word takes.
size_t bpe_word(const unsigned char *s, size_t n);

#endif
