// csv.c - reads a whole CSV file and splits it in place; writes a number.

#include "lockstep/csv.h"

#include "base/base.h"
#include "base/file.h"
#include "telemetry/cell.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// A cell takes at least one byte of the file, and a pointer. So all cells take
// at most 9 times the file's bytes.
enum { SHARE = 16 }; // of the free memory: the largest file

static int count_lines(const char *text)
{
    int n = 0;
    for (; (text = strchr(text, '\n')); text++)
        n++;
    return n;
}

static int count_cells(const char *row)
{
    int n = 1;
    for (; *(row = cell_end(row)) == ','; row++)
        n++;
    return n;
}

// Splits a row into `ncols` cells. Returns the next row, or NULL if the row has
// a different number of cells.
static char *split(char *row, char **cells, int ncols)
{
    for (int i = 0; i < ncols; i++) {
        char *end = row + (cell_end(row) - row), was = *end;
        cells[i] = row;
        if ((i + 1 < ncols) != (was == ','))
            return NULL;
        *end = '\0';
        row = was ? end + 1 : end;
        cell_strip(cells[i]);
    }
    return row;
}

int csv_open(struct csv *c, const char *path)
{
    char *text = file_read(path, mem_available() / SHARE);
    *c = (struct csv){0};
    return text ? csv_take(c, text, path) : -1;
}

int csv_take(struct csv *c, char *text, const char *path)
{
    *c = (struct csv){.text = text};
    int lines = count_lines(c->text);
    c->ncols = count_cells(c->text);
    c->header = mem_alloc((size_t)c->ncols, sizeof *c->header);
    c->cells =
        mem_alloc((size_t)lines * (size_t)c->ncols + 1, sizeof *c->cells);
    if (!c->header || !c->cells) {
        csv_close(c);
        return -1;
    }
    char *at = split(c->text, c->header, c->ncols);
    for (; at && *at && c->nrows < lines; c->nrows++)
        at =
            split(at, c->cells + (size_t)c->nrows * (size_t)c->ncols, c->ncols);
    if (at)
        return 0;
    int row = c->nrows;
    csv_close(c);
    return fail("%s: row %d has a different number of columns than the header",
                path, row);
}

void csv_close(struct csv *c)
{
    mem_free(c->header);
    mem_free(c->cells);
    mem_free(c->text);
    *c = (struct csv){0};
}

int csv_column(const struct csv *c, const char *name)
{
    for (int i = 0; i < c->ncols; i++)
        if (!strcmp(c->header[i], name))
            return i;
    return -1;
}

const char *csv_text(const struct csv *c, int row, int col)
{
    return col < 0 ? ""
                   : c->cells[(size_t)row * (size_t)c->ncols + (size_t)col];
}

double csv_number(const struct csv *c, int row, int col)
{
    const char *text = csv_text(c, row, col);
    return *text ? strtod(text, NULL) : NAN;
}
