// page.h - an animated page of traces on one clock: the template
// core/virtual/page.html with the data in it. It needs no other file.
//
//     {"title": .., "lead": [..], "panels": [{"name": .., "note": ..,
//      "colour": .., "trace": {"traceEvents": [..]},      Trace Event JSON
//      "begin_us": .., "end_us": .., "step": ..,          the part to show
//      "law": {PID: {"out": bytes, "in": bytes}},         bytes by the law
//      "total": {PID: {..}},                              bytes counted, if
//                                                         events have none
//      "cells": {"ranks": .., "vectors": [..], "states": [..]}}, ..]}

#pragma once

#include <stdio.h>

// Opens the page at `path` for writing. The caller writes the data, JSON as
// above, and ends with page_close(). Replaces an existing file, and logs that.
// NULL after fail().
FILE *page_open(const char *path);

// Writes the rest of the template and closes the file. 0, or -1 after fail().
int page_close(FILE *f, const char *path);

// Writes `text` as a JSON string that is safe inside HTML.
void page_string(FILE *f, const char *text);
