// html.c - one style sheet, escaping, and SVG put inline.

#include "lockstep/html.h"

#include "base/base.h"
#include "base/file.h"

#include <math.h>
#include <string.h>

static const char style[] =
    ":root{color-scheme:light dark;--ink:#1a1a1a;--paper:#fff;--soft:#666;"
    "--line:#d5d5d5;--card:#f6f6f4;--warn:#8a4b00}\n"
    "@media(prefers-color-scheme:dark){:root{--ink:#e8e8e6;--paper:#17181a;"
    "--soft:#a0a0a0;--line:#3a3b3e;--card:#222326;--warn:#f0b060}}\n"
    "body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);"
    "background:var(--paper);max-width:72rem;margin:0 auto;"
    "padding:1rem 1rem 4rem}\n"
    "h1{line-height:1.2;margin:1.5rem 0 .5rem}h2{margin:2.2rem 0 .6rem;"
    "border-bottom:1px solid var(--line)}\n"
    "p{max-width:46rem}p.question{font-size:1.15rem}"
    ".soft{color:var(--soft);font-size:.9rem}td .soft{font-size:.75rem}\n"
    ".warn{color:var(--warn);font-weight:600}\n"
    "figure{margin:1rem 0;background:#fff;border:1px solid var(--line);"
    "border-radius:6px;padding:.3rem;break-inside:avoid}\n"
    "figure{overflow-x:auto}figure svg{display:block;width:100%;height:auto;"
    "min-width:38rem}\n"
    ".wide{overflow-x:auto}table{border-collapse:collapse;font-size:.9rem;"
    "font-variant-numeric:tabular-nums}\n"
    "th,td{padding:.3rem .5rem;text-align:right;border-bottom:1px solid "
    "var(--line);white-space:nowrap}th:first-child,td:first-child"
    "{text-align:left;position:sticky;left:0;background:var(--paper)}"
    "thead th{vertical-align:bottom}\n"
    "pre{background:var(--card);padding:.8rem;white-space:pre-wrap;"
    "overflow-wrap:anywhere;font-size:.85rem;border-radius:6px}"
    "code{font-size:.92em}\n"
    "@media print{figure svg{min-width:0}body{max-width:none;font-size:10pt;"
    "color:#000;background:#fff}.wide{overflow:visible}"
    "h2,h3{break-after:avoid}tr{break-inside:avoid}"
    "thead{display:table-header-group}"
    "th:first-child,td:first-child{position:static}"
    "table{font-size:7.5pt}th,td{padding:.15rem .3rem}}\n";

void html_begin(FILE *f, const char *title)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta "
          "charset=\"utf-8\">\n<meta name=\"viewport\" "
          "content=\"width=device-width, initial-scale=1\">\n<title>",
          f);
    html_text(f, title);
    fprintf(f, "</title>\n<style>\n%s</style>\n</head>\n<body>\n", style);
}

void html_end(FILE *f)
{
    fputs("</body>\n</html>\n", f);
}

void html_text(FILE *f, const char *text)
{
    for (; *text; text++) {
        if (*text == '<')
            fputs("&lt;", f);
        else if (*text == '>')
            fputs("&gt;", f);
        else if (*text == '&')
            fputs("&amp;", f);
        else
            fputc(*text, f);
    }
}

void html_element(FILE *f, const char *tag, const char *text)
{
    fprintf(f, "<%s>", tag);
    html_text(f, text);
    fprintf(f, "</%.*s>\n", (int)strcspn(tag, " "), tag);
}

void html_number(FILE *f, double v, int digits)
{
    if (isnan(v))
        fputs("&ndash;", f);
    else if (fabs(v) >= 1000)
        fprintf(f, "%.0f", v);
    else
        fprintf(f, "%.*g", digits, v);
}

// Whether a line of SVG might do more than draw; gnuplot writes none such.
static bool is_active(const char *line)
{
    static const char *const words[] = {"<script",     "<foreignobject",
                                        "<iframe",     "<animate",
                                        "javascript:", "<set",
                                        "onload",      "onclick",
                                        "onmouse",     "onfocus",
                                        "onerror",     "onbegin"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasestr(line, words[i]))
            return true;
    return false;
}

int html_svg(FILE *f, const char *path)
{
    bool inside = false;
    char *next, *text = file_read(path, 1 << 26);
    if (!text)
        return -1;
    if (is_active(text)) {
        mem_free(text);
        return fail("%s: holds more than a drawing; not shown", path);
    }
    for (char *line = text; *line; line = next) {
        size_t n = strcspn(line, "\n");
        next = line + n + (line[n] == '\n');
        inside |= strncmp(line, "<svg", 4) == 0;
        if (inside)
            fwrite(line, 1, (size_t)(next - line), f);
    }
    mem_free(text);
    return 0;
}
