// suggest.h - "did you mean": the known word nearest to a mistyped one, and our
// word for a name from another program.

#pragma once

#include <stdbool.h>

// The least number of insertions, deletions, substitutions and swaps of
// neighbours that turn a into b. Only the first 63 bytes of each count. Capital
// and small letters are equal.
int suggest_distance(const char *a, const char *b);

// The nearest of words[0..n), the first of several; NULL if none is near. Near
// are words that differ by one change, or by one for every three letters of the
// longer. If one contains the other (batch_size), or word is short for the
// other (bcast for broadcast), they are near, at a distance of at most 2.
// Dashes in front of word do not count.
const char *suggest_nearest(const char *word, const char *const *words, int n);

// The nearest word with `before` in front of it; empty if none is near. Returns
// `out`.
enum { SUGGEST_TEXT = 128 };
const char *suggest_text(char out[SUGGEST_TEXT], const char *before,
                         const char *word, const char *const *words, int n);

// A name from another program, with ours. An error about a wrong word names
// ours.
struct term {
    const char *key;   // of key=word; "" if the word is a name of a key
    const char *words; // with blanks between them
    const char *ours;  // what to write instead; "" if Lockstep has nothing
                       // like it, and docs/limits.md says why
};
extern const struct term suggest_terms[]; // terms.c; the last has no words

// Our words for a name from another program. For a key: what to write
// instead of key=word. For the key "": what to write instead of a key called
// `word`; what stands before a dot in it does not count (model.block_size). ""
// if Lockstep has nothing like it, NULL if the name is not known. Capitals, "-"
// and "_" do not count.
const char *suggest_ours(const char *key, const char *word);

// What an error says of a name for which Lockstep has nothing.
#define SUGGEST_NONE "Lockstep has nothing like it, see docs/limits.md"
