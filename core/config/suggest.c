// suggest.c - edit distance with swaps (Damerau 1964), by dynamic programming:
// row i of the table holds the cost of turning the first i letters of a into
// each prefix of b. terms.c translates names from other programs, for which the
// nearest key would be the wrong one.

#include "config/suggest.h"

#include <ctype.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST = 63 };

static int least(int a, int b)
{
    return a < b ? a : b;
}

static bool same(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

int suggest_distance(const char *a, const char *b)
{
    int na = (int)strnlen(a, LONGEST), nb = (int)strnlen(b, LONGEST);
    int cost[LONGEST + 1][LONGEST + 1];
    for (int i = 0; i <= na; i++)
        cost[i][0] = i;
    for (int j = 0; j <= nb; j++)
        cost[0][j] = j;
    for (int i = 1; i <= na; i++) {
        for (int j = 1; j <= nb; j++) {
            int best = cost[i - 1][j - 1] + !same(a[i - 1], b[j - 1]);
            best = least(best, cost[i - 1][j] + 1);
            best = least(best, cost[i][j - 1] + 1);
            if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) &&
                same(a[i - 2], b[j - 1]))
                best = least(best, cost[i - 2][j - 2] + 1);
            cost[i][j] = best;
        }
    }
    return cost[na][nb];
}

static bool holds(const char *outer, const char *inner)
{
    return strlen(inner) >= 3 && strcasestr(outer, inner);
}

// Whether a word leaves out letters of a whole one but the first, at most half
// of them: bcast for broadcast.
static bool shortens(const char *word, const char *whole)
{
    size_t n = strlen(word), from = strlen(whole);
    if (n < 3 || n * 2 < from || !same(*word, *whole))
        return false;
    for (; *word && *whole; whole++)
        word += same(*word, *whole);
    return !*word;
}

// Whether so many changes still leave a word that could have been meant: one
// change, or one for every three letters.
static bool is_near(int distance, const char *a, const char *b)
{
    size_t na = strlen(a), nb = strlen(b), longer = na > nb ? na : nb;
    return distance <= (longer < 6 ? 1 : (int)(longer / 3));
}

const char *suggest_nearest(const char *word, const char *const *words, int n)
{
    const char *nearest = NULL;
    int best = INT_MAX;
    word += strspn(word, "-");
    for (int i = 0; i < n; i++) {
        int distance = suggest_distance(word, words[i]);
        bool near = is_near(distance, word, words[i]);
        if (holds(word, words[i]) || holds(words[i], word) ||
            shortens(word, words[i])) {
            distance = least(distance, 2);
            near = true;
        }
        if (near && distance < best) {
            best = distance;
            nearest = words[i];
        }
    }
    return nearest;
}

const char *suggest_text(char out[SUGGEST_TEXT], const char *before,
                         const char *word, const char *const *words, int n)
{
    const char *nearest = suggest_nearest(word, words, n);
    snprintf(out, SUGGEST_TEXT, "%s%s", nearest ? before : "",
             nearest ? nearest : "");
    return out;
}

static char plain(const char **s)
{
    while (**s == '-' || **s == '_')
        ++*s;
    return **s ? (char)tolower((unsigned char)*(*s)++) : '\0';
}

// Whether the first of `words` is `word`.
static bool is_first(const char *words, const char *word)
{
    char ours, theirs;
    do {
        ours = plain(&words);
        theirs = plain(&word);
    } while (ours == theirs && ours);
    return !theirs && (!ours || ours == ' ');
}

const char *suggest_ours(const char *key, const char *word)
{
    const char *dot = strrchr(word, '.');
    if (!*key && dot)
        word = dot + 1;
    for (const struct term *t = suggest_terms; t->words; t++) {
        if (strcmp(t->key, key))
            continue;
        for (const char *w = t->words; w; w = strchr(w, ' ')) {
            w += *w == ' ';
            if (is_first(w, word))
                return t->ours;
        }
    }
    return NULL;
}
