// trace_parts.h - one file of several: OUT/NAME.0.csv, OUT/NAME.1.csv and
// OUT/NAME.s0.csv become OUT/NAME.csv when the job is over.

#ifndef TELEMETRY_TRACE_PARTS_H
#define TELEMETRY_TRACE_PARTS_H

#include <stdbool.h>
#include <stdio.h>

enum { PARTS_PATH = 1200, PARTS_LINE = 1024 };

struct parts {
    const char *name, *suffix;  // "trace", "json"
    const char *before, *after; // of all lines
    bool servers; // also parts of servers (NAME.s0.csv), which have ended
    bool anew;    // what the whole file holds is dropped
    bool cut; // copy() drops what came after until_s, of the whole file, too
    double until_s;
    // Copy a line of a part to `to`, as it is or not at all; `lines` is the
    // callback's to count.
    void (*copy)(struct parts *p, char *line);
    FILE *to;
    long lines;
};

// Join all parts, behind what the whole file holds already, and remove them.
// Nothing is done where there is no part, or nothing to cut. 0, or -1 after
// fail().
int parts_merge(struct parts *p, const char *out);

// Of CSV: the first line is a header, kept once.
int parts_merge_csv(const char *out, const char *name, bool servers);

// For a run that goes on from its second until_s: the same for what workers
// left behind, without the rows after it, by their first column.
int parts_cut_csv(const char *out, const char *name, double until_s);

// The parts replace what the whole file held.
int parts_renew_csv(const char *out, const char *name);

#endif
