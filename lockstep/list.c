// list.c - reads comma-separated lists.

#include "lockstep/list.h"

#include "base/base.h"
#include "config/backends.h"
#include "config/value.h"

#include <string.h>

static int read_workers(const char *item, int *out)
{
    int64_t n;
    if (value_whole(item, &n) || n < 2 || n > LIST_WORKERS)
        return fail("workers=%s: must be whole numbers, 2 .. %d", item,
                    LIST_WORKERS);
    *out = (int)n;
    return 0;
}

// The first backend (local) trains one worker, so it is not accepted here.
static int read_backend(const char *item, int *out)
{
    if (!strcmp(item, backend_at(0)->name))
        return fail("sync=%s: has one worker and no communication; try: a "
                    "backend of several workers, as sync=%s",
                    item, backend_at(1)->name);
    *out = 1 + value_word("sync", item, backend_names + 1);
    if (*out > 0 && !backend_has_law(backend_at(*out)))
        return fail("sync=%s: its bytes depend on a student's file; try: "
                    "labs/grade, which counts them",
                    item);
    return *out == 0 ? -1 : 0;
}

static int read_items(struct list *l, const char *key, const char *text,
                      int (*read)(const char *item, int *out))
{
    char item[CONFIG_WORD];
    l->n = 0;
    for (const char *p = text;; p++) {
        size_t len = strcspn(p, ",");
        snprintf(item, sizeof item, "%.*s", (int)len, p);
        if (l->n == LIST_MOST)
            return fail("%s=%s: more than %d", key, text, LIST_MOST);
        if (read(item, &l->at[l->n++]))
            return -1;
        p += len;
        if (!*p)
            return 0;
    }
}

int list_workers(struct list *l, const char *text)
{
    return read_items(l, "workers", text, read_workers);
}

int list_backends(struct list *l, const char *text)
{
    return read_items(l, "sync", text, read_backend);
}

static const char *list_where(char text[LIST_TEXT],
                              bool (*is)(const struct backend *))
{
    text[0] = '\0';
    const struct backend *b;
    for (int i = 0; (b = backend_at(i)); i++)
        if (is(b))
            strcat(strcat(text, *text ? "," : ""), b->name);
    return text;
}

const char *list_all_backends(char text[LIST_TEXT])
{
    return list_where(text, backend_has_law);
}

const char *list_simulated_backends(char text[LIST_TEXT])
{
    return list_where(text, backend_is_simulated);
}
