// page.h - a page that plays traces on one clock: the template
// core/virtual/page.html with data in it, and nothing outside of it.
//
//     {"title": .., "lead": [..], "panels": [{"name": .., "note": ..,
//      "colour": .., "trace": {"traceEvents": [..]},      Trace Event JSON
//      "begin_us": .., "end_us": .., "step": ..,          what is shown of it
//      "law": {PID: {"out": bytes, "in": bytes}},         what must be moved
//      "total": {PID: {..}},                              what was, if events
//                                                         do not say it
//      "cells": {"ranks": .., "vectors": [..], "states": [..]}}, ..]}

#ifndef EXPLAIN_PAGE_H
#define EXPLAIN_PAGE_H

#include <stdio.h>

// Open the page at `path`: what is written until page_close() is its data.
// NULL after fail().
FILE *page_open(const char *path);

// The rest of the template. 0, or -1 after fail().
int page_close(FILE *f, const char *path);

// A JSON string, safe inside of HTML.
void page_string(FILE *f, const char *text);

#endif
