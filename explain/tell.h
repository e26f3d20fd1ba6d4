// tell.h - writes a story (story.h) as text, or as an animated page.

#pragma once

#include "explain/story.h"

#include <stdio.h>

// Prints every message, then the bytes of every rank with the law.
void tell_text(const struct story *s, FILE *f);

// Writes the page (core/virtual/page.html) to `path`. 0, or -1 after fail().
int tell_page(const struct story *s, const char *path);
