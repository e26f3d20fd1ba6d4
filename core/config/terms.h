// terms.h - names from other programs and papers, with ours: plain data.
//
// An error about a wrong word names ours (suggest.h). docs/names.md has the
// same rows as tables, and `ctest -R suggest` compares the two.

#pragma once

#include <stdbool.h>

struct term {
    const char *key;   // of key=word; "" if the word is a name of a key
    const char *words; // with blanks between them
    const char *ours;  // what to write instead; "" if Lockstep has nothing
                       // like it, and docs/limits.md says why
};

// Row i; false after the last.
bool term_row(int i, struct term *row);
