// suggest.h - "did you mean": the known word nearest to a mistyped one.

#ifndef CONFIG_SUGGEST_H
#define CONFIG_SUGGEST_H

// The least number of insertions, deletions, substitutions and swaps of
// neighbours that turn a into b (of the first 63 bytes of each); capitals are
// their small letters.
int suggest_distance(const char *a, const char *b);

// The nearest of words[0..n), the first of equals; NULL if n is 0. A word that
// holds the other (batch_size, max_steps) is two away.
const char *suggest_nearest(const char *word, const char *const *words, int n);

#endif
