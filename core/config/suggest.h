// suggest.h - "did you mean": the known word nearest to a mistyped one, and
// ours for what others call by another name.

#ifndef CONFIG_SUGGEST_H
#define CONFIG_SUGGEST_H

#include <stdbool.h>

// The least number of insertions, deletions, substitutions and swaps of
// neighbours that turn a into b (of the first 63 bytes of each); capitals are
// their small letters.
int suggest_distance(const char *a, const char *b);

// The nearest of words[0..n), the first of equals; NULL if n is 0. A word that
// holds the other (batch_size, max_steps) is two away.
const char *suggest_nearest(const char *word, const char *const *words, int n);

// What the field calls otherwise: the words to write here in place of
// key=word, or of the key `word` where key is ""; NULL: not known. Capitals,
// "-" and "_" do not count.
const char *suggest_ours(const char *key, const char *word);

// Row i of that table: false behind the last.
struct suggest_row {
    const char *key, *words, *ours; // several words have blanks between them
};
bool suggest_row(int i, struct suggest_row *row);

#endif
