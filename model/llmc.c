// llmc.c - model files of Karpathy's llm.c, versions 3 (fp32) and 5 (bf16).
//
// The file is ordered by kind of tensor, and within a kind by layer. Our vector
// is ordered by layer. So the place of a layer's tensor in the file is
// computed.

#include "model/llmc.h"

#include "base/base.h"
#include "base/file.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

enum { HEADER = 256, VERSION_FP32 = 3, VERSION_BF16 = 5, CHUNK = 1 << 14 };

struct llmc {
    FILE *file;
    const char *path;
    struct model_config config;
    size_t padded; // rows of wte in the file
    size_t size;   // bytes of a number
};

static int check_header(struct llmc *f, const int32_t *h)
{
    if (h[0] != LLMC_MODEL)
        return fail("%s: magic %d, an llm.c model has %d", f->path, h[0],
                    LLMC_MODEL);
    if (h[1] != VERSION_FP32 && h[1] != VERSION_BF16)
        return fail("%s: llm.c model version %d, must be %d (fp32) or %d "
                    "(bf16); try: export it with a newer train_gpt2.py",
                    f->path, h[1], VERSION_FP32, VERSION_BF16);
    f->size = h[1] == VERSION_FP32 ? 4 : 2;
    f->config = (struct model_config){.context = h[2],
                                      .vocab = h[3],
                                      .layers = h[4],
                                      .heads = h[5],
                                      .channels = h[6]};
    if (model_check(&f->config))
        return fail("%s: %s", f->path, fail_message());
    // llm.c pads to a multiple of 128.
    if (h[7] < h[3] || h[7] - h[3] >= 128)
        return fail("%s: the vocabulary of %d is padded to %d; must be the "
                    "next multiple of 128",
                    f->path, h[3], h[7]);
    f->padded = (size_t)h[7];
    return 0;
}

static size_t expected_bytes(const struct llmc *f)
{
    size_t extra = f->padded - (size_t)f->config.vocab;
    size_t n = model_nparams(&f->config) + extra * (size_t)f->config.channels;
    return HEADER * sizeof(int32_t) + n * f->size;
}

static int open_file(struct llmc *f)
{
    struct stat st;
    int32_t header[HEADER];
    f->file = file_open(f->path);
    if (!f->file ||
        file_read_at(fileno(f->file), f->path, header, sizeof header, 0) ||
        check_header(f, header))
        return -1;
    if (fstat(fileno(f->file), &st))
        return fail("%s: %s", f->path, strerror(errno));
    if ((size_t)st.st_size != expected_bytes(f))
        return fail("%s: the file has %zu bytes, but its header says %zu; "
                    "try: fetch the file again",
                    f->path, (size_t)st.st_size, expected_bytes(f));
    return 0;
}

int llmc_open(struct llmc **out, const char *path)
{
    struct llmc *f = mem_alloc(1, sizeof *f);
    if (!f)
        return -1;
    f->path = path;
    if (open_file(f)) {
        llmc_close(&f);
        return -1;
    }
    *out = f;
    return 0;
}

void llmc_close(struct llmc **f)
{
    if (!*f)
        return;
    if ((*f)->file)
        fclose((*f)->file);
    mem_free(*f);
    *f = NULL;
}

const struct model_config *llmc_config(const struct llmc *f)
{
    return &f->config;
}

// Where our tensor i begins in the file, in elements.
static size_t first_element(const struct llmc *f, int i)
{
    const struct model_config *c = &f->config;
    struct tensor t;
    model_tensor(c, i, &t);
    size_t padding = (f->padded - (size_t)c->vocab) * (size_t)c->channels;
    if (i == 0)
        return 0;
    if (i == 1 || i >= model_ntensors(c) - 2)
        return t.off + padding;
    int layer = (i - 2) / MODEL_PER_LAYER, kind = (i - 2) % MODEL_PER_LAYER;
    struct tensor first, same; // of layer 0: its first, and that of this kind
    model_tensor(c, 2, &first);
    model_tensor(c, 2 + kind, &same);
    return first.off + padding + (size_t)layer * t.n +
           (size_t)c->layers * (same.off - first.off);
}

static int read_chunk(const struct llmc *f, const struct tensor *t, size_t at,
                      size_t first, size_t n, float *out)
{
    uint16_t half[CHUNK];
    size_t off = HEADER * sizeof(int32_t) + (at + first) * f->size;
    void *to = f->size == 4 ? (void *)out : (void *)half;
    if (file_read_at(fileno(f->file), f->path, to, n * f->size, off))
        return -1;
    for (size_t k = 0; k < n; k++) {
        if (f->size == 2)
            out[k] = bf16_to_float(half[k]);
        if (!isfinite(out[k]))
            return fail("%s: tensor %s: element %zu is %g", f->path, t->name,
                        first + k, out[k]);
    }
    return 0;
}

int llmc_read(const struct llmc *f, int i, size_t from, size_t n, float *out)
{
    struct tensor t;
    model_tensor(&f->config, i, &t);
    size_t at = first_element(f, i);
    size_t ins = t.ndim == 2 && i > 1 ? t.shape[0] : 1;
    float chunk[CHUNK];
    for (size_t first = 0, len; first < t.n; first += len) {
        len = t.n - first < CHUNK ? t.n - first : CHUNK;
        if (read_chunk(f, &t, at, first, len, chunk))
            return -1;
        for (size_t k = first; out && k < first + len; k++) {
            // Matrices are (out, in) in the file and (in, out) here.
            size_t here = k % ins * t.shape[1] + k / ins;
            if (here >= from && here - from < n)
                out[here - from] = chunk[k - first];
        }
    }
    return 0;
}
