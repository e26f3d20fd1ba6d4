// suggest.c - edit distance with swaps (Damerau 1964), by the usual table: row
// i holds the cost of turning the first i letters of a into each start of b.

#include "config/suggest.h"

#include <ctype.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
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

const char *suggest_nearest(const char *word, const char *const *words, int n)
{
    const char *nearest = NULL;
    int best = INT_MAX;
    for (int i = 0; i < n; i++) {
        int distance = suggest_distance(word, words[i]);
        if (holds(word, words[i]) || holds(words[i], word))
            distance = least(distance, 2);
        if (distance < best) {
            best = distance;
            nearest = words[i];
        }
    }
    return nearest;
}
