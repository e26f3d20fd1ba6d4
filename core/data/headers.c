// headers.c - reads the default text for training: C headers, from which GPT-2
// learns to write C.
//
// Names are compared byte by byte in every locale, and links are not followed.
// So the same packages give the same text.

#include "data/headers.h"

#include "base/base.h"

#include <errno.h>
#include <fts.h>
#include <stdbool.h>
#include <string.h>

static int by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

static bool is_header(const FTSENT *e)
{
    size_t n = e->fts_namelen;
    return e->fts_info == FTS_F && n > 2 &&
           memcmp(e->fts_name + n - 2, ".h", 2) == 0;
}

// A header that cannot be read is skipped.
static void append(struct headers *h, const char *path, size_t left)
{
    FILE *f = fopen(path, "rbe");
    if (!f)
        return;
    size_t n = fread(h->text + h->bytes, 1, left, f);
    fclose(f);
    h->bytes += n;
    h->files += n > 0;
}

int headers_read(struct headers *out, const char *root, size_t max_bytes)
{
    struct headers h = {.text = mem_alloc(max_bytes, 1)};
    if (!h.text)
        return -1;
    char *roots[] = {(char *)(uintptr_t)root, NULL};
    FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, by_name);
    if (!walk) {
        mem_free(h.text);
        return fail("data: %s: %s", root, strerror(errno));
    }
    for (FTSENT *e; h.bytes < max_bytes && (e = fts_read(walk)) != NULL;)
        if (is_header(e))
            append(&h, e->fts_accpath, max_bytes - h.bytes);
    fts_close(walk);
    if (h.bytes ==
        max_bytes) // the last file was cut: keep only its whole lines
        while (h.bytes > 0 && h.text[h.bytes - 1] != '\n')
            h.bytes--;
    if (h.bytes == 0) {
        mem_free(h.text);
        return fail("data: no C headers below %s; try: data=FILE, or install "
                    "libc6-dev",
                    root);
    }
    *out = h;
    return 0;
}
