// own_words.c - divides the words of a command between its own keys and those
// of train.

#include "forecast/own_words.h"

#include "base/base.h"

#include <string.h>

static bool is_own(const struct key_table *t, const char *word)
{
    for (int k = 0; k < t->n; k++) {
        size_t n = strlen(t->rows[k].name);
        if (!strncmp(word, t->rows[k].name, n) && word[n] == '=')
            return true;
    }
    return false;
}

int own_words(const struct key_table *t, void *base, struct run *r, int nwords,
              char **words)
{
    char **own = mem_alloc(2 * (size_t)nwords + 1, sizeof *own);
    int n = 0, others = 0;
    if (!own)
        return -1;
    for (int i = 0; i < nwords; i++)
        if (is_own(t, words[i]))
            own[n++] = words[i];
        else
            own[nwords + others++] = words[i];
    key_defaults(t, base);
    int rc = key_words(t, base, n, own) || config_parse(r, others, own + nwords)
                 ? -1
                 : 0;
    mem_free(own);
    return rc;
}
