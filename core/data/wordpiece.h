// wordpiece.h - BERT's WordPiece encoding, for which its vocab.txt is enough.
//
//     text -> words -> of each word the longest token at its start, then the
//     longest "##" token at the start of the rest, and so on -> tokens
//
// Words end at white space; punctuation and Chinese characters are words of
// their own. A word without such tokens is one [UNK]. If no token has a capital
// letter, text first becomes lower-case and loses its accents. White space is
// not encoded. Line i of the file is token i. Sources: Schuster and Nakajima
// (ICASSP 2012); Devlin and others (NAACL 2019), whose rules these are.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { WORDPIECE_LONGEST = 200 }; // bytes of a token

struct wordpiece;

// Whether a text of n bytes is a vocab.txt: it has the line [UNK].
bool wordpiece_is(const char *text, size_t n);

// Reads a vocab.txt of n bytes. Errors begin with `name` and the line. 0, or -1
// after fail(). wordpiece_close() frees it.
int wordpiece_open(struct wordpiece **w, const char *name, const char *text,
                   size_t n);
void wordpiece_close(struct wordpiece **w);

// The number of tokens.
size_t wordpiece_size(const struct wordpiece *w);

// Encodes n bytes; those that are not UTF-8 are left out. `out` must hold n
// tokens. Returns how many there are.
long wordpiece_encode(const struct wordpiece *w, const char *text, size_t n,
                      uint16_t *out);

// Writes the token's text, of at most WORDPIECE_LONGEST + 1 bytes: with a blank
// before it if it begins a word, unless that is punctuation or Chinese. Returns
// the number of bytes.
size_t wordpiece_decode(const struct wordpiece *w, size_t token, char *out);

// Writes the file that wordpiece_open() reads.
void wordpiece_write(const struct wordpiece *w, FILE *f);
