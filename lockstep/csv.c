// csv.c - reads a whole CSV file and splits it in place; writes a number.

#include "lockstep/csv.h"

#include "base/base.h"
#include "base/file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// A cell takes at least one byte of the file, and a pointer. So all cells take
// at most 9 times the file's bytes.
enum { SHARE = 16 }; // of the free memory: the largest file

static int count(const char *text, char c, const char *end)
{
    int n = 0;
    for (; *text && text != end; text++)
        n += *text == c;
    return n;
}

// Splits a line at its commas into `ncols` cells. Returns the next line, or
// NULL if the line has a different number of cells.
static char *split(char *line, char **cells, int ncols)
{
    char *end = line + strcspn(line, "\n");
    char *next = *end ? end + 1 : end;
    *end = '\0';
    for (int i = 0; i < ncols; i++) {
        char *comma = strchr(line, ',');
        cells[i] = line;
        if ((i + 1 < ncols) != (comma != NULL))
            return NULL;
        if (comma) {
            *comma = '\0';
            line = comma + 1;
        }
    }
    return next;
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
    int lines = count(c->text, '\n', NULL);
    c->ncols = 1 + count(c->text, ',', strchr(c->text, '\n'));
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

void csv_put(FILE *f, double v)
{
    if (isnan(v))
        fputs(",", f);
    else
        fprintf(f, ",%.7g", v);
}

double csv_number(const struct csv *c, int row, int col)
{
    const char *text = csv_text(c, row, col);
    return *text ? strtod(text, NULL) : NAN;
}
