// trace_parts.h - merges several files: OUT/NAME.0.csv, OUT/NAME.1.csv and
// OUT/NAME.s0.csv become OUT/NAME.csv when the job is over.

#pragma once

#include <stdbool.h>
#include <stdio.h>

struct parts {
    const char *name, *suffix;  // "trace", "json"
    const char *before, *after; // text before and after all lines
    bool servers;               // also parts of servers (NAME.s0.csv)
    bool replace;               // drop the lines that the whole file has
    double until_s;             // copy() drops later lines, also of the whole
                                // file; INFINITY: it drops none
    // Copies a line of a part to `to`, or drops it. May count in `lines`.
    void (*copy)(struct parts *p, char *line);
    FILE *to;
    long lines;
};

// Appends all parts to the whole file, and removes them. Does nothing if there
// is no part and nothing to cut. 0, or -1 after fail().
int parts_merge(struct parts *p, const char *out);

// The same for CSV files: the first line is a header, which is kept once.
int parts_merge_csv(const char *out, const char *name, bool servers);

// For a run that goes on from its time until_s: the same for the files that
// workers left, without the rows whose first column is above until_s.
int parts_cut_csv(const char *out, const char *name, double until_s);

// The same, but the parts replace the whole file.
int parts_renew_csv(const char *out, const char *name);

// Removes OUT/NAME.0.csv .. of `world` ranks. 0, or -1 after fail().
int parts_drop_csv(const char *out, const char *name, int world);
