// cell.h - cells of CSV files, as in RFC 4180: a cell with a comma, a quote or
// a newline is in quotes, and a quote in it is written twice.

#pragma once

#include <stddef.h>

// Writes `text` as a cell to `to`. A name of a file takes CELL_NAME bytes at
// most. 0, or -1 after fail() if it does not fit.
enum { CELL_NAME = 2 * 255 + 3 };
int cell_write(char *to, size_t size, const char *text);

// Returns the end of a cell: the comma or the newline behind it, or the end of
// the text.
const char *cell_end(const char *cell);

// Returns cell k of a row, from 0; if the row is shorter, its end.
const char *cell_at(const char *row, int k);
