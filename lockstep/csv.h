// csv.h - a CSV file of ours in memory: one header row, no quotes.

#ifndef LOCKSTEP_CSV_H
#define LOCKSTEP_CSV_H

#include <stddef.h>
#include <stdio.h>

struct csv {
    int ncols, nrows; // without the header
    char **header;
    char **cells; // nrows * ncols
    char *text;   // what they point into
};

// 0, or -1 after fail(): no such file, or a row of another length.
int csv_open(struct csv *c, const char *path);
// The same of text that was read already, which it takes; `path` is for errors.
int csv_take(struct csv *c, char *text, const char *path);
void csv_close(struct csv *c);

// The column called `name`; -1 if there is none.
int csv_column(const struct csv *c, const char *name);

const char *csv_text(const struct csv *c, int row, int col);
double csv_number(const struct csv *c, int row, int col); // NaN: empty

// Writing: a comma and the number; NaN is empty.
void csv_put(FILE *f, double v);

#endif
