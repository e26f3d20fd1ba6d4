// csv.h - reads the CSV files that Lockstep writes: one header row, then
// rows of cells (telemetry/cell.h).

#ifndef LOCKSTEP_CSV_H
#define LOCKSTEP_CSV_H

#include <stddef.h>
#include <stdio.h>

struct csv {
    int ncols, nrows; // nrows: without the header
    char **header;
    char **cells; // (nrows, ncols), row by row
    char *text;   // header and cells point into it
};

// Reads a file into *c. The caller closes *c. 0, or -1 after fail() if there is
// no such file or a row has a different number of columns than the header.
int csv_open(struct csv *c, const char *path);
// The same for a text in memory. It takes `text`, also on failure. `path` is
// for error messages.
int csv_take(struct csv *c, char *text, const char *path);
void csv_close(struct csv *c);

// Returns the index of the column called `name`; -1 if there is none.
int csv_column(const struct csv *c, const char *name);

// A cell as text, and as a number. The row is 0 .. nrows - 1. If `col` is -1
// the cell counts as empty. An empty cell is "" or NaN.
const char *csv_text(const struct csv *c, int row, int col);
double csv_number(const struct csv *c, int row, int col);

#endif
