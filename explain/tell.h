// tell.h - a story as text, and as a page that plays it.

#ifndef EXPLAIN_TELL_H
#define EXPLAIN_TELL_H

#include "explain/story.h"

#include <stdio.h>

// Message by message, then bytes beside the law.
void tell_text(const struct story *s, FILE *f);

// The page (core/virtual/page.html) at `path`. 0, or -1 after fail().
int tell_page(const struct story *s, const char *path);

#endif
