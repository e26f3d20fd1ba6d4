// checkpoint_write.c - write a model's weights for Hugging Face's tools.
//
// The flat vector's order is the file's order, so a vector is written as it
// lies: one header, then one piece for the parameters and one a slot.

#include "model/checkpoint.h"

#include "base/base.h"
#include "base/file.h"

#include <stdlib.h>
#include <string.h>

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

int checkpoint_write(const char *path, const struct model_config *c,
                     const float *params, int nslots,
                     const char *const *slot_names, const float *const *slots,
                     int ntext, const struct checkpoint_text *text)
{
    CHECK(nslots >= 0 && nslots <= CHECKPOINT_MAX_SLOTS);
    CHECK(params || nslots > 0);
    struct iovec pieces[2 + 1 + CHECKPOINT_MAX_SLOTS];
    char *header = NULL;
    size_t size = 0, bytes = model_nparams(c) * sizeof(float), off = 0;
    int n = 2, status = -1;
    FILE *f = open_memstream(&header, &size);
    if (!f)
        return fail("cannot write %s: no memory", path);
    fputc('{', f);
    put_metadata(f, c, nslots, slot_names, ntext, text);
    if (params) {
        put_vector(f, c, NULL, off);
        pieces[n++] = (struct iovec){(void *)(uintptr_t)params, bytes};
        off += bytes;
    }
    for (int i = 0; i < nslots; i++) {
        put_vector(f, c, slot_names[i], off);
        pieces[n++] = (struct iovec){(void *)(uintptr_t)slots[i], bytes};
        off += bytes;
    }
    fputc('}', f);
    // Blanks, so that the numbers behind lie aligned.
    for (long at = ftell(f); at % 8 != 0; at++)
        fputc(' ', f);
    bool broken = ferror(f);
    if (fclose(f) || broken) {
        fail("cannot write %s: no memory for its header", path);
        goto free_header;
    }
    uint64_t length = size;
    pieces[0] = (struct iovec){&length, sizeof length};
    pieces[1] = (struct iovec){header, size};
    status = file_replace(path, pieces, n);
free_header:
    free(header);
    return status;
}
