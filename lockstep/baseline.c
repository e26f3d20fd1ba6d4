// baseline.c - finds the cell that each cell is compared with.
//
// A cell of an experiment combines a [cell NAME] of its file with one value of
// each axis, that is of each key of [matrix]. The cells are numbered with the
// last axis fastest. baseline= may fix NAME and the values of some axes. A
// cell's baseline has these, and otherwise the cell's own NAME and values.

#include "lockstep/experiment.h"

#include "base/base.h"

#include <string.h>

enum { OWN = -1 }; // baseline= does not fix this part: each cell keeps its own

// Returns the place of `piece` in `rest`, between blanks; NULL if it is not
// there.
static char *find(char *rest, const char *piece)
{
    size_t n = strlen(piece);
    for (char *at = rest; n && (at = strstr(at, piece)); at++)
        if ((at == rest || at[-1] == ' ') && (!at[n] || at[n] == ' '))
            return at;
    return NULL;
}

// Overwrites `piece` in `rest` with blanks. Returns whether it was there.
static bool take(char *rest, const char *piece)
{
    char *at = find(rest, piece);
    if (at)
        memset(at, ' ', strlen(piece));
    return at != NULL;
}

// Takes the longest name that fits: "m=8" may be a cell beside "local m=8".
static int take_named(const struct experiment *e, char *rest)
{
    int longest = OWN;
    for (int i = 0; i < e->nnamed; i++)
        if (find(rest, e->named[i].name) &&
            (longest == OWN ||
             strlen(e->named[i].name) > strlen(e->named[longest].name)))
            longest = i;
    if (longest != OWN)
        take(rest, e->named[longest].name);
    return longest;
}

// Looks for a value as cell names show it: "batch=8", or the value alone if it
// is a list of settings.
static int take_value(const struct axis *a, char *rest)
{
    char piece[sizeof a->key + EXP_WORD];
    for (int i = 0; i < a->n; i++) {
        bool several = strchr(a->values[i], '=') != NULL;
        snprintf(piece, sizeof piece, "%s%s%s", several ? "" : a->key,
                 several ? "" : "=", a->values[i]);
        if (take(rest, piece))
            return i;
    }
    return OWN;
}

int experiment_baselines(struct experiment *e)
{
    char rest[EXP_TEXT];
    int fixed[EXP_AXES];
    strcpy(rest, e->baseline);
    int named = take_named(e, rest);
    for (int a = 0; a < e->naxes; a++)
        fixed[a] = take_value(&e->axes[a], rest);
    const char *first = e->cells[0].name;
    const char *quote = strchr(first, ' ') ? "'" : ""; // for a shell
    if (rest[strspn(rest, " ")])
        return fail("baseline=%s: no cell has this name; try: baseline=%s%s%s",
                    e->baseline, quote, first, quote);
    for (int c = 0; c < e->ncells; c++) {
        int k = 0, stride = 1, left = c;
        for (int a = e->naxes - 1; a >= 0; a--) {
            int n = e->axes[a].n, own = left % n;
            k += stride * (fixed[a] == OWN ? own : fixed[a]);
            stride *= n;
            left /= n;
        }
        k += stride * (named == OWN ? left : named);
        e->cells[c].baseline = *e->baseline ? k : -1;
    }
    return 0;
}
