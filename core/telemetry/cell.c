// cell.c - writes and reads cells of CSV files.

#include "telemetry/cell.h"

#include "base/base.h"

#include <stdbool.h>
#include <string.h>

int cell_write(char *to, size_t size, const char *text)
{
    size_t n = 0;
    bool quoted = text[strcspn(text, ",\"\r\n")] != '\0';
    if (2 * strlen(text) + 3 > size && (quoted || strlen(text) + 1 > size))
        return fail("%.60s..: too long for a cell of a CSV file", text);
    if (quoted)
        to[n++] = '"';
    for (; *text; text++) {
        if (*text == '"')
            to[n++] = '"';
        to[n++] = *text;
    }
    if (quoted)
        to[n++] = '"';
    to[n] = '\0';
    return 0;
}

const char *cell_end(const char *at)
{
    bool quoted = *at == '"';
    if (quoted)
        at++;
    for (; *at && quoted; at++)
        if (*at == '"' && *++at != '"')
            break;
    return at + strcspn(at, ",\n");
}

const char *cell_at(const char *row, int k)
{
    while (k-- > 0) {
        row = cell_end(row);
        if (*row != ',')
            break;
        row++;
    }
    return row;
}
