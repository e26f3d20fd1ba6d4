// page.c - writes the template with the data in it.

#include "explain/page.h"

#include "base/base.h"
#include "base/file.h"

#include <string.h>
#include <unistd.h>

// The build makes it from core/virtual/page.html.
extern const char page_template[];

static const char mark[] = "{{DATA}}";

static const char *find_mark(void)
{
    const char *at = strstr(page_template, mark);
    CHECK(at != NULL);
    return at;
}

FILE *page_open(const char *path)
{
    if (access(path, F_OK) == 0)
        log_line("%s: replacing the existing file", path);
    FILE *f = file_create(path);
    if (f)
        fwrite(page_template, 1, (size_t)(find_mark() - page_template), f);
    return f;
}

int page_close(FILE *f, const char *path)
{
    fputs(find_mark() + strlen(mark), f);
    return file_close(f, path);
}

void page_string(FILE *f, const char *text)
{
    fputc('"', f);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            fprintf(f, "\\%c", c);
        else if (c < 0x20 || c == '<')
            fprintf(f, "\\u%04x", c);
        else
            fputc(c, f);
    }
    fputc('"', f);
}
