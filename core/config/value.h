// value.h - reads numbers and words from text, and writes them. It refuses
// blanks, trailing letters, hexadecimal and infinity.

#pragma once

#include <stdbool.h>
#include <stdint.h>

// Read a number. 0, or -1 without fail(), since the caller knows the range that
// the error must name. A whole number may be written 1e6.
int value_whole(const char *text, int64_t *out);
int value_real(const char *text, double *out);

// The index of `text` in the NULL-terminated words, or -1 after fail() that
// names all words and the nearest.
int value_word(const char *key, const char *text, const char *const *words);

// Whether `text` is one of the NULL-terminated words.
bool value_known(const char *text, const char *const *words);

// The shortest decimal that reads back as x. Writes into buf, returns buf.
char *value_text(char buf[32], double x);

// Seconds as people write them, to the nearest: 0:05, 12:00 or 2:03:04.
char *value_seconds(char buf[32], double s);

// A limit as people write it: 2^30, 2^53-1. Not for reading back.
char *value_limit(char buf[32], double x);
