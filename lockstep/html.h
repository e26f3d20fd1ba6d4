// html.h - the few pieces of HTML that the report is made of.

#ifndef LOCKSTEP_HTML_H
#define LOCKSTEP_HTML_H

#include <stdio.h>

// Head and style sheet: readable on a phone and in print, in light and dark.
void html_begin(FILE *f, const char *title);
void html_end(FILE *f);

// Text with <, > and & escaped.
void html_text(FILE *f, const char *text);

// <TAG>text</TAG>
void html_element(FILE *f, const char *tag, const char *text);

// A number with at most `digits` significant ones; a dash for NaN.
void html_number(FILE *f, double v, int digits);

// The <svg> of a file, without what comes before it. -1 if there is no file.
int html_svg(FILE *f, const char *path);

#endif
