// suggest.h - "did you mean": the known word nearest to a mistyped one, and our
// word for a name from another program.

#ifndef CONFIG_SUGGEST_H
#define CONFIG_SUGGEST_H

#include <stdbool.h>

// The least number of insertions, deletions, substitutions and swaps of
// neighbours that turn a into b. Only the first 63 bytes of each count. Capital
// and small letters are equal.
int suggest_distance(const char *a, const char *b);

// The nearest of words[0..n), the first of several; NULL if n is 0. If one word
// contains the other (batch_size, max_steps), their distance is at most 2.
const char *suggest_nearest(const char *word, const char *const *words, int n);

// Our words for a name from another program. For a key: what to write instead
// of key=word. For the key "": what to write instead of a key called `word`.
// NULL if the name is not known. Capitals, "-" and "_" do not count.
const char *suggest_ours(const char *key, const char *word);

// Row i of that list; false after the last.
struct suggest_row {
    const char *key, *words, *ours; // words: with blanks between them
};
bool suggest_row(int i, struct suggest_row *row);

#endif
