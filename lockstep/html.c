// html.c - writes the style sheet, escapes text, and checks and copies SVG.

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

// ---- SVG

static bool is_word(const char *text, size_t n, const char *const *words)
{
    for (; *words; words++)
        if (strlen(*words) == n && !strncmp(text, *words, n))
            return true;
    return false;
}

// Returns the place behind one attribute, name='value'. Returns NULL if it is
// no attribute, or if it might do more than draw: run a script or load a file.
static const char *skip_attribute(const char *p)
{
    size_t n = strspn(p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                         "0123456789:-_");
    bool link = n >= 4 && !strncasecmp(p + n - 4, "href", 4);
    if (n == 0 || !strncasecmp(p, "on", 2) ||
        (n == 5 && !strncasecmp(p, "style", 5)))
        return NULL;
    p += n + strspn(p + n, " \n");
    if (*p++ != '=')
        return NULL;
    p += strspn(p, " \n");
    const char *end = *p == '"' || *p == '\'' ? strchr(p + 1, *p) : NULL;
    if (!end || (link && p[1] != '#'))
        return NULL;
    for (const char *url = p; (url = strcasestr(url, "url(")) && url < end;
         url += 4)
        if (url[4] != '#')
            return NULL;
    return end + 1;
}

// Returns whether an SVG has only elements that gnuplot uses.
static bool is_drawing(const char *svg)
{
    static const char *const tags[] = {
        "svg",      "title",          "desc",     "defs",
        "filter",   "feFlood",        "g",        "path",
        "use",      "circle",         "rect",     "feComposite",
        "text",     "tspan",          "line",     "stop",
        "polygon",  "pattern",        "polyline", "ellipse",
        "clipPath", "linearGradient", NULL};
    for (const char *p = svg; (p = strchr(p, '<'));) {
        p += 1 + (p[1] == '/');
        size_t n = strcspn(p, " \n/>");
        if (!is_word(p, n, tags))
            return false;
        p += n + strspn(p + n, " \n");
        while (*p != '>' && strncmp(p, "/>", 2)) {
            p = skip_attribute(p);
            if (!p)
                return false;
            p += strspn(p, " \n");
        }
    }
    return true;
}

int html_svg(FILE *f, const char *path)
{
    char *text = file_read(path, 1 << 26);
    if (!text)
        return -1;
    const char *svg = strstr(text, "<svg"); // behind <?xml ..>
    bool drawing = svg && is_drawing(svg);
    if (drawing)
        fputs(svg, f);
    mem_free(text);
    return drawing ? 0
                   : fail("%s: contains more than a drawing, so the report "
                          "leaves it out",
                          path);
}
