// own_words.h - the words of a command that has keys of its own besides those
// of train.

#pragma once

#include "config/keys.h"

// Sets the defaults of *t in the struct at `base`. Then sets each word whose
// key is one of *t in the struct, and all other words, and INI files, in *r. 0,
// or -1 after fail().
int own_words(const struct key_table *t, void *base, struct run *r, int nwords,
              char **words);
