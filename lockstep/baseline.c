// baseline.c - which cell each cell is compared with.
//
// A cell is a named cell and a value of each axis; its number counts through
// them, the last axis fastest. What baseline= fixes is the same in all
// baselines, and a cell's own otherwise.

#include "lockstep/experiment.h"

#include "base/base.h"

#include <string.h>

enum { OWN = -1 }; // not fixed

// Where `piece` stands in `rest` between blanks; NULL: nowhere.
static char *find(char *rest, const char *piece)
{
    size_t n = strlen(piece);
    for (char *at = rest; n && (at = strstr(at, piece)); at++)
        if ((at == rest || at[-1] == ' ') && (!at[n] || at[n] == ' '))
            return at;
    return NULL;
}

// Blank `piece` out of `rest`, where it stands there.
static bool take(char *rest, const char *piece)
{
    char *at = find(rest, piece);
    if (at)
        memset(at, ' ', strlen(piece));
    return at != NULL;
}

// "local m=8" may be the name of a cell where "m=8" is another: the longest.
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

// As a cell's name has it: "batch=8", or the value itself where it sets keys.
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
        return fail("baseline=%s: no cell is called so; try: baseline=%s%s%s",
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
