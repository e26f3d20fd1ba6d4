// html.h - writes the pieces of HTML that the report needs.

#ifndef LOCKSTEP_HTML_H
#define LOCKSTEP_HTML_H

#include <stdio.h>

// Write the start of a page, with its style sheet, and its end. The page is
// readable on a phone and in print, in light and dark mode.
void html_begin(FILE *f, const char *title);
void html_end(FILE *f);

// Writes text with <, > and & escaped.
void html_text(FILE *f, const char *text);

// Writes <TAG>text</TAG>, with the text escaped. `tag` may have attributes.
void html_element(FILE *f, const char *tag, const char *text);

// Writes a number with at most `digits` significant digits, or a dash for NaN.
void html_number(FILE *f, double v, int digits);

// Copies the <svg> element of a file. 0, or -1 after fail() if the file cannot
// be read or contains more than a drawing.
int html_svg(FILE *f, const char *path);

#endif
