// checkpoint_write.c - write a model's weights for Hugging Face's tools.
//
// The flat vector's order is the file's order, so a vector is written as it
// lies: one header, then one piece for the parameters and one a slot. A range
// of a slot has its place behind the header, too.

#include "model/checkpoint.h"

#include "base/base.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// A string of JSON: quotes, backslashes and control characters escaped.
static void put_string(FILE *f, const char *text)
{
    fputc('"', f);
    for (const char *s = text; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            fprintf(f, "\\%c", c);
        else if (c < ' ')
            fprintf(f, "\\u%04x", c);
        else
            fputc(c, f);
    }
    fputc('"', f);
}

// `off`: bytes of the data before this vector.
static void put_vector(FILE *f, const struct model_config *c, const char *slot,
                       size_t off)
{
    for (int i = 0; i < model_ntensors(c); i++) {
        struct tensor t;
        model_tensor(c, i, &t);
        size_t begin = off + t.off * sizeof(float);
        fprintf(f, ",\"%s%s%s\":{\"dtype\":\"F32\",\"shape\":[%zu",
                slot ? slot : "", slot ? "." : "", t.name, t.shape[0]);
        if (t.ndim == 2)
            fprintf(f, ",%zu", t.shape[1]);
        fprintf(f, "],\"data_offsets\":[%zu,%zu]}", begin,
                begin + t.n * sizeof(float));
    }
}

static bool is_ours(const char *key)
{
    return strcmp(key, "format") == 0 || strcmp(key, "heads") == 0 ||
           strcmp(key, "slots") == 0;
}

static void put_metadata(FILE *f, const struct model_config *c, int nslots,
                         const char *const *slot_names, int ntext,
                         const struct checkpoint_text *text)
{
    fprintf(f, "\"__metadata__\":{\"format\":\"pt\",\"heads\":\"%d\"",
            c->heads);
    for (int i = 0; i < nslots; i++)
        fprintf(f, "%s%s", i ? " " : ",\"slots\":\"", slot_names[i]);
    if (nslots)
        fputc('"', f);
    for (int i = 0; i < ntext; i++) {
        if (is_ours(text[i].key))
            continue;
        fputc(',', f);
        put_string(f, text[i].key);
        fputc(':', f);
        put_string(f, text[i].value);
    }
    fputc('}', f);
}

// What stands before the numbers, for free().
static int make_header(const char *path, const struct model_config *c,
                       bool params, int nslots, const char *const *slot_names,
                       int ntext, const struct checkpoint_text *text,
                       char **header, size_t *size)
{
    CHECK(nslots >= 0 && nslots <= CHECKPOINT_MAX_SLOTS);
    CHECK(params || nslots > 0);
    size_t bytes = model_nparams(c) * sizeof(float), off = 0;
    *header = NULL;
    FILE *f = open_memstream(header, size);
    if (!f)
        return fail("cannot write %s: no memory", path);
    fputc('{', f);
    put_metadata(f, c, nslots, slot_names, ntext, text);
    if (params)
        put_vector(f, c, NULL, 0);
    for (int i = 0; i < nslots; i++) {
        off = (size_t)(params + i) * bytes;
        put_vector(f, c, slot_names[i], off);
    }
    fputc('}', f);
    // Blanks, so that the numbers behind lie aligned.
    for (long at = ftell(f); at % 8 != 0; at++)
        fputc(' ', f);
    bool broken = ferror(f);
    if (!fclose(f) && !broken)
        return 0;
    free(*header);
    return fail("cannot write %s: no memory for its header", path);
}

int checkpoint_write(const char *path, const struct model_config *c,
                     const float *params, int nslots,
                     const char *const *slot_names, const float *const *slots,
                     int ntext, const struct checkpoint_text *text)
{
    struct iovec pieces[2 + 1 + CHECKPOINT_MAX_SLOTS];
    char *header;
    size_t size, bytes = model_nparams(c) * sizeof(float);
    int n = 2;
    if (make_header(path, c, params != NULL, nslots, slot_names, ntext, text,
                    &header, &size))
        return -1;
    uint64_t length = size;
    pieces[0] = (struct iovec){&length, sizeof length};
    pieces[1] = (struct iovec){header, size};
    if (params)
        pieces[n++] = (struct iovec){(void *)(uintptr_t)params, bytes};
    for (int i = 0; i < nslots; i++)
        pieces[n++] = (struct iovec){(void *)(uintptr_t)slots[i], bytes};
    int status = file_replace(path, pieces, n);
    free(header);
    return status;
}

// ---- by ranges

static int open_to_write(const char *path)
{
    int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        fail("cannot write %s: %s; try: out= in a folder that all workers see",
             path, strerror(errno));
    return fd;
}

int checkpoint_make(const char *path, const struct model_config *c, int nslots,
                    const char *const *slot_names)
{
    char *header;
    size_t size, bytes = (size_t)nslots * model_nparams(c) * sizeof(float);
    if (make_header(path, c, false, nslots, slot_names, 0, NULL, &header,
                    &size))
        return -1;
    uint64_t length = size;
    struct iovec pieces[] = {{&length, sizeof length}, {header, size}};
    int status = file_replace(path, pieces, 2);
    free(header);
    if (!status && truncate(path, (off_t)(sizeof length + size + bytes)))
        status = fail("cannot write %s: %s", path, strerror(errno));
    return status;
}

static int write_at(int fd, const char *from, size_t bytes, off_t at)
{
    while (bytes > 0) {
        ssize_t n = pwrite(fd, from, bytes, at);
        if (n < 0 && errno != EINTR)
            return -1;
        if (n > 0) {
            from += n;
            at += n;
            bytes -= (size_t)n;
        }
    }
    return 0;
}

int checkpoint_write_range(const char *path, const struct model_config *c,
                           int slot, size_t off, const float *v, size_t n)
{
    uint64_t length;
    size_t element = (size_t)slot * model_nparams(c) + off;
    int fd = open_to_write(path), status = 0;
    if (fd < 0)
        return -1;
    if (pread(fd, &length, sizeof length, 0) != sizeof length ||
        write_at(fd, (const char *)v, n * sizeof *v,
                 (off_t)(sizeof length + length + element * sizeof *v)))
        status = fail("cannot write %s: %s", path, strerror(errno));
    if (close(fd) && !status)
        status = fail("cannot write %s: %s", path, strerror(errno));
    return status;
}

int checkpoint_sync(const char *path)
{
    int fd = open_to_write(path);
    if (fd < 0)
        return -1;
    int status =
        fsync(fd) ? fail("cannot write %s: %s", path, strerror(errno)) : 0;
    close(fd);
    return status;
}
