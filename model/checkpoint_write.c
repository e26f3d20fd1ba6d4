// checkpoint_write.c - writes a model's weights for Hugging Face's tools.
//
// The flat vector and the file have the same order, so a vector is written
// unchanged. A file has one header, then the parameters, or the slots one after
// another. So a range of a slot also has a fixed place behind the header.

#include "model/checkpoint.h"

#include "base/base.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// GPT-2's <|endoftext|>, the last word of its own vocabulary. transformers
// takes it for eos and bos if config.json does not name them.
enum { END_OF_TEXT = 50256 };

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

static void put_metadata(FILE *f, const struct model_config *c, int nslots,
                         const char *const *slot_names)
{
    fprintf(f, "\"__metadata__\":{\"format\":\"pt\",\"heads\":\"%d\"",
            c->heads);
    for (int i = 0; i < nslots; i++)
        fprintf(f, "%s%s", i ? " " : ",\"slots\":\"", slot_names[i]);
    fputs(nslots ? "\"}" : "}", f);
}

// Makes the header, which comes before the numbers. The caller frees it. nslots
// 0: a header for parameters.
static int make_header(const char *path, const struct model_config *c,
                       int nslots, const char *const *slot_names, char **header,
                       size_t *size)
{
    size_t bytes = model_nparams(c) * sizeof(float);
    *header = NULL;
    FILE *f = open_memstream(header, size);
    if (!f)
        return fail("cannot write %s: no memory", path);
    fputc('{', f);
    put_metadata(f, c, nslots, slot_names);
    if (nslots == 0)
        put_vector(f, c, NULL, 0);
    for (int i = 0; i < nslots; i++)
        put_vector(f, c, slot_names[i], (size_t)i * bytes);
    fputc('}', f);
    // Blanks align the numbers after the header.
    for (long at = ftell(f); at % 8 != 0; at++)
        fputc(' ', f);
    bool broken = ferror(f);
    if (!fclose(f) && !broken)
        return 0;
    free(*header);
    return fail("cannot write %s: no memory for its header", path);
}

// Writes a file with the parameters. With params NULL, the file gets its full
// size without numbers: for nslots slots or, if nslots is 0, for the
// parameters.
static int make_file(const char *path, const struct model_config *c,
                     const float *params, int nslots,
                     const char *const *slot_names)
{
    char *header;
    size_t size, bytes = model_nparams(c) * sizeof(float);
    if (make_header(path, c, nslots, slot_names, &header, &size))
        return -1;
    uint64_t length = size;
    struct iovec pieces[] = {{&length, sizeof length},
                             {header, size},
                             {(void *)(uintptr_t)params, bytes}};
    int status = file_replace(path, pieces, params ? 3 : 2);
    size_t vectors = nslots ? (size_t)nslots : 1;
    off_t all = (off_t)(sizeof length + size + vectors * bytes);
    free(header);
    if (!status && !params && truncate(path, all))
        status = fail("cannot write %s: %s", path, strerror(errno));
    return status;
}

int checkpoint_write(const char *path, const struct model_config *c,
                     const float *params)
{
    return make_file(path, c, params, 0, NULL);
}

int checkpoint_make(const char *path, const struct model_config *c, int nslots,
                    const char *const *slot_names)
{
    return make_file(path, c, NULL, nslots, slot_names);
}

int checkpoint_write_config(const char *path, const struct model_config *c)
{
    char text[1024];
    const char *end = c->vocab == END_OF_TEXT + 1 ? "50256" : "null";
    if (text_into(text, sizeof text,
                  "{\n"
                  "  \"architectures\": [\"GPT2LMHeadModel\"],\n"
                  "  \"model_type\": \"gpt2\",\n"
                  "  \"activation_function\": \"gelu_new\",\n"
                  "  \"attn_pdrop\": %g,\n"
                  "  \"embd_pdrop\": %g,\n"
                  "  \"resid_pdrop\": %g,\n"
                  "  \"layer_norm_epsilon\": 1e-05,\n"
                  "  \"initializer_range\": 0.02,\n"
                  "  \"n_layer\": %d,\n"
                  "  \"n_head\": %d,\n"
                  "  \"n_embd\": %d,\n"
                  "  \"n_positions\": %d,\n"
                  "  \"n_ctx\": %d,\n"
                  "  \"vocab_size\": %d,\n"
                  "  \"bos_token_id\": %s,\n"
                  "  \"eos_token_id\": %s,\n"
                  "  \"tie_word_embeddings\": true\n"
                  "}\n",
                  c->dropout, c->dropout, c->dropout, c->layers, c->heads,
                  c->channels, c->context, c->context, c->vocab, end, end))
        return -1;
    return file_replace_text(path, text);
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

int checkpoint_writer_open(struct checkpoint_writer *w, const char *path)
{
    uint64_t length;
    *w = (struct checkpoint_writer){.path = path, .fd = open_to_write(path)};
    if (w->fd < 0)
        return -1;
    if (pread(w->fd, &length, sizeof length, 0) != sizeof length) {
        close(w->fd);
        return fail("cannot write %s: it has no header", path);
    }
    w->numbers = (off_t)(sizeof length + length);
    return 0;
}

int checkpoint_write_range(const struct checkpoint_writer *w,
                           const struct model_config *c, int slot, size_t off,
                           const float *v, size_t n)
{
    size_t element = (size_t)slot * model_nparams(c) + off;
    return write_at(w->fd, (const char *)v, n * sizeof *v,
                    w->numbers + (off_t)(element * sizeof *v))
               ? fail("cannot write %s: %s", w->path, strerror(errno))
               : 0;
}

int checkpoint_writer_close(struct checkpoint_writer *w)
{
    return close(w->fd) ? fail("cannot write %s: %s", w->path, strerror(errno))
                        : 0;
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
