// checkpoint.c - reads a model's weights from safetensors or from llm.c's .bin.
//
// It reads the file twice: the first pass checks every number, the second fills
// the vector. That needs no second copy of the model, and a bad file changes
// nothing.

#include "model/checkpoint.h"
#include "model/llmc.h"
#include "model/safetensors.h"

#include "base/base.h"
#include "base/file.h"

#include <cjson/cJSON.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK = 1 << 13, NAME = 128, MAX_CONFIG = 1 << 16 };

// The prefix under which transformers' GPT2LMHeadModel keeps the same tensors.
static const char lm_prefix[] = "transformer";

struct checkpoint {
    const char *path;
    const struct model_config *c;
    struct safetensors *file;
    struct llmc *llmc; // instead of `file`, if the format is llm.c's
    size_t *end;       // where each tensor ends in the vector, in elements
    int nslots;        // slots to read; 0: the parameters
    const char *const *slot_names;
};

// Opens the parameters' k->file or k->llmc, as the first bytes tell.
static int open_file(struct checkpoint *k)
{
    int32_t magic = 0;
    FILE *f = file_open(k->path);
    if (!f)
        return -1;
    size_t n = fread(&magic, sizeof magic, 1, f);
    fclose(f);
    return n == 1 && magic == LLMC_MODEL ? llmc_open(&k->llmc, k->path)
                                         : safetensors_open(&k->file, k->path);
}

// The tensor "prefix.name"; NULL if there is none.
static const struct safetensors_tensor *
find(const struct checkpoint *k, const char *prefix, const char *name)
{
    char full[NAME];
    if (text_into(full, sizeof full, "%s.%s", prefix, name))
        return NULL;
    return safetensors_find(k->file, full);
}

// *out = the tensor `name`, with the prefix or without; NULL if there is none.
static int find_param(const struct checkpoint *k, const char *name,
                      const struct safetensors_tensor **out)
{
    const struct safetensors_tensor *plain = safetensors_find(k->file, name);
    const struct safetensors_tensor *prefixed = find(k, lm_prefix, name);
    *out = plain ? plain : prefixed;
    if (plain && prefixed)
        return fail("%s: holds both %s and %s.%s; try: remove one", k->path,
                    name, lm_prefix, name);
    return 0;
}

// ---- which configuration

// How many layers h.0, h.1, .. the file has without a gap.
static int count_layers(const struct checkpoint *k)
{
    char name[NAME];
    for (int layer = 0;; layer++) {
        int status = text_into(name, sizeof name, "h.%d.ln_1.weight", layer);
        CHECK(status == 0);
        if (!safetensors_find(k->file, name) && !find(k, lm_prefix, name))
            return layer;
    }
}

// Rows and columns of an embedding.
static int table_shape(const struct checkpoint *k, const char *name, int *rows,
                       int *columns)
{
    const struct safetensors_tensor *t;
    if (find_param(k, name, &t))
        return -1;
    if (!t)
        return fail("%s: holds no tensor %s: not a GPT-2", k->path, name);
    if (t->ndim != 2 || t->shape[0] > INT_MAX || t->shape[1] > INT_MAX)
        return fail("%s: tensor %s is not a matrix of usual size", k->path,
                    name);
    *rows = (int)t->shape[0];
    *columns = (int)t->shape[1];
    return 0;
}

// *heads = "n_head" of a config.json, if it has that.
static int parse_heads(const char *path, const char *text, int *heads)
{
    cJSON *json = cJSON_Parse(text);
    const cJSON *e = cJSON_GetObjectItemCaseSensitive(json, "n_head");
    double n = cJSON_GetNumberValue(e); // NaN if it is none
    int status = 0;
    if (!json)
        status = fail("%s: not JSON; try: remove it or mend it", path);
    else if (e && !(n >= 1 && n <= INT_MAX && n == (int)n))
        status = fail("%s: n_head is not a positive number", path);
    else if (e)
        *heads = (int)n;
    cJSON_Delete(json);
    return status;
}

// *heads = "n_head" of the config.json beside the file `path`, if there is one.
static int heads_beside(const char *path, int *heads)
{
    char beside[PATH_MAX];
    const char *slash = strrchr(path, '/');
    if (text_into(beside, sizeof beside, "%.*sconfig.json",
                  slash ? (int)(slash - path) + 1 : 0, path))
        return -1;
    if (access(beside, R_OK))
        return 0;
    char *text = file_read(beside, MAX_CONFIG);
    if (!text)
        return -1;
    int status = *text ? parse_heads(beside, text, heads) : 0;
    mem_free(text);
    return status;
}

// *heads = the number of heads in the file's metadata or in the config.json
// beside it; 0 if neither has it.
static int known_heads(const struct checkpoint *k, int *heads)
{
    const char *text = safetensors_metadata(k->file, "heads");
    *heads = 0;
    if (!text)
        return heads_beside(k->path, heads);
    char *end;
    long value = strtol(text, &end, 10);
    if (end == text || *end || value < 1 || value > INT_MAX)
        return fail("%s: metadata heads is not a positive number", k->path);
    *heads = (int)value;
    return 0;
}

static int implied_config(const struct checkpoint *k, struct model_config *out)
{
    struct model_config c = {.layers = count_layers(k)};
    int channels, heads;
    if (table_shape(k, "wte.weight", &c.vocab, &c.channels) ||
        table_shape(k, "wpe.weight", &c.context, &channels) ||
        known_heads(k, &heads))
        return -1;
    if (channels != c.channels)
        return fail("%s: wte.weight has %d channels, wpe.weight %d", k->path,
                    c.channels, channels);
    if (heads == 0 && c.channels % 64 == 0)
        heads = c.channels / 64;
    c.heads = heads ? heads : 1;
    if (model_check(&c))
        return fail("%s: %s", k->path, fail_message());
    c.heads = heads;
    *out = c;
    return 0;
}

int checkpoint_config(const char *path, struct model_config *out)
{
    struct checkpoint k = {.path = path};
    int status = open_file(&k);
    if (!status && k.llmc)
        *out = *llmc_config(k.llmc);
    else if (!status)
        status = implied_config(&k, out);
    safetensors_close(&k.file);
    llmc_close(&k.llmc);
    return status;
}

// ---- which tensors

// Whether `name`, without any prefix, is a tensor of the model.
static bool is_param(const struct model_config *c, const char *name)
{
    struct tensor t;
    int first = 0, n = model_ntensors(c), count = n;
    if (strncmp(name, "h.", 2) == 0) {
        long layer = strtol(name + 2, NULL, 10);
        if (layer < 0 || layer >= c->layers)
            return false;
        first = 2 + (int)layer * MODEL_PER_LAYER;
        count = MODEL_PER_LAYER;
    }
    for (int i = first; i < first + count; i++) {
        model_tensor(c, i, &t);
        if (strcmp(t.name, name) == 0)
            return true;
    }
    return false;
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

// Whether metadata "slots" lists the first n characters of `name` as a word.
static bool lists_slot(const struct safetensors *file, const char *name,
                       size_t n)
{
    const char *list = safetensors_metadata(file, "slots");
    while (list && *list && n > 0) {
        size_t word = strcspn(list, " ");
        if (word == n && strncmp(list, name, n) == 0)
            return true;
        list += word + strspn(list + word, " ");
    }
    return false;
}

// Every tensor of the file must be a known one: a tensor that is not read might
// change what the model computes.
static int check_names(const struct checkpoint *k)
{
    size_t n = strlen(lm_prefix);
    for (int i = 0; i < safetensors_count(k->file); i++) {
        const char *full = safetensors_at(k->file, i)->name, *name = full;
        const char *dot = strchr(full, '.');
        if (dot && lists_slot(k->file, full, (size_t)(dot - full)) &&
            is_param(k->c, dot + 1))
            continue;
        if (strncmp(full, lm_prefix, n) == 0 && full[n] == '.')
            name += n + 1;
        bool mask = strncmp(name, "h.", 2) == 0 &&
                    (ends_with(name, ".attn.bias") ||
                     ends_with(name, ".attn.masked_bias"));
        if (!mask && strcmp(full, "lm_head.weight") != 0 &&
            !is_param(k->c, name))
            return fail("%s: unknown tensor %.64s in a GPT-2 of %d layers; "
                        "try: remove it from the file",
                        k->path, full, k->c->layers);
    }
    return 0;
}

static void shape_text(char *buf, size_t size, int ndim, const size_t *shape)
{
    size_t at = 0;
    buf[0] = '\0';
    for (int i = 0; i < ndim && at < size; i++)
        at += (size_t)snprintf(buf + at, size - at, "%s%zu", i ? "," : "",
                               shape[i]);
}

static int check_shape(const struct checkpoint *k, const struct tensor *t,
                       const struct safetensors_tensor *found)
{
    if (found->ndim == t->ndim &&
        memcmp(found->shape, t->shape, (size_t)t->ndim * sizeof *t->shape) == 0)
        return 0;
    char has[192], wanted[64];
    shape_text(has, sizeof has, found->ndim, found->shape);
    shape_text(wanted, sizeof wanted, t->ndim, t->shape);
    return fail("%s: tensor %.64s is (%s), this model's is (%s); try: the "
                "file's own layers, channels, context and vocab_size",
                k->path, found->name, has, wanted);
}

// ---- the numbers

// *out = the tensor `name` of `slot`. If slot is NULL, it is the parameters'
// tensor.
static int find_vector(const struct checkpoint *k, const char *slot,
                       const char *name, const struct safetensors_tensor **out)
{
    if (slot)
        *out = find(k, slot, name);
    else if (find_param(k, name, out))
        return -1;
    return *out ? 0
                : fail("%s: tensor %s%s%s is missing", k->path,
                       slot ? slot : "", slot ? "." : "", name);
}

// Checks all tensors of `slot`, or those of the parameters if slot is NULL.
static int check_vector(const struct checkpoint *k, const char *slot)
{
    for (int i = 0; i < model_ntensors(k->c); i++) {
        struct tensor t;
        const struct safetensors_tensor *found;
        model_tensor(k->c, i, &t);
        if (find_vector(k, slot, t.name, &found) || check_shape(k, &t, found) ||
            safetensors_read(k->file, found, 0, found->n, NULL))
            return -1;
    }
    return 0;
}

// The head is tied to wte. If the file has a tensor for it, that must equal
// wte.
static int check_head(const struct checkpoint *k)
{
    const struct safetensors_tensor *head, *wte;
    struct tensor t;
    model_tensor(k->c, 0, &t);
    head = safetensors_find(k->file, "lm_head.weight");
    if (!head)
        return 0;
    if (find_param(k, t.name, &wte) || check_shape(k, &t, head))
        return -1;
    float a[CHUNK], b[CHUNK];
    for (size_t at = 0, n; at < t.n; at += n) {
        n = t.n - at < CHUNK ? t.n - at : CHUNK;
        if (safetensors_read(k->file, head, at, n, a) ||
            safetensors_read(k->file, wte, at, n, b))
            return -1;
        if (memcmp(a, b, n * sizeof *a) != 0)
            return fail("%s: lm_head.weight differs from wte.weight: the head "
                        "of this model is tied",
                        k->path);
    }
    return 0;
}

static int check_file(const struct checkpoint *k)
{
    int heads;
    if (known_heads(k, &heads))
        return -1;
    if (heads && heads != k->c->heads)
        return fail("%s: the file's model has heads=%d, this one heads=%d",
                    k->path, heads, k->c->heads);
    if (check_names(k))
        return -1;
    if (k->nslots == 0)
        return check_vector(k, NULL) || check_head(k) ? -1 : 0;
    for (int i = 0; i < k->nslots; i++)
        if (check_vector(k, k->slot_names[i]))
            return -1;
    return 0;
}

static int check_llmc(const struct checkpoint *k)
{
    const struct model_config *c = k->c, *has = llmc_config(k->llmc);
    if (has->layers != c->layers || has->heads != c->heads ||
        has->channels != c->channels || has->context != c->context ||
        has->vocab != c->vocab)
        return fail("%s: the file's model has layers=%d heads=%d channels=%d "
                    "context=%d vocab_size=%d, this one %d %d %d %d %d",
                    k->path, has->layers, has->heads, has->channels,
                    has->context, has->vocab, c->layers, c->heads, c->channels,
                    c->context, c->vocab);
    for (int i = 0; i < model_ntensors(c); i++)
        if (llmc_read(k->llmc, i, 0, 0, NULL))
            return -1;
    return 0;
}

int checkpoint_has_slot(const char *path, const char *slot_name)
{
    struct safetensors *file;
    if (access(path, F_OK))
        return 0;
    if (safetensors_open(&file, path))
        return -1;
    bool has = lists_slot(file, slot_name, strlen(slot_name));
    safetensors_close(&file);
    return has;
}

int checkpoint_open(struct checkpoint **out, const char *path,
                    const struct model_config *c, int nslots,
                    const char *const *slot_names)
{
    struct checkpoint *k = mem_alloc(1, sizeof *k);
    if (!k)
        return -1;
    size_t n = (size_t)model_ntensors(c);
    *k = (struct checkpoint){.path = path,
                             .c = c,
                             .nslots = nslots,
                             .slot_names = slot_names,
                             .end = mem_alloc(n, sizeof *k->end)};
    if (!k->end || (nslots ? safetensors_open(&k->file, path) : open_file(k)) ||
        (k->llmc ? check_llmc(k) : check_file(k))) {
        checkpoint_close(&k);
        return -1;
    }
    for (int i = 0; i < (int)n; i++) {
        struct tensor t;
        model_tensor(c, i, &t);
        k->end[i] = t.off + t.n;
    }
    *out = k;
    return 0;
}

void checkpoint_close(struct checkpoint **k)
{
    if (!*k)
        return;
    safetensors_close(&(*k)->file);
    llmc_close(&(*k)->llmc);
    mem_free((*k)->end);
    mem_free(*k);
    *k = NULL;
}

// The index of the tensor that holds element `off`. A binary search, because a
// worker that holds a slice of each tensor reads many small ranges.
static int tensor_of(const struct checkpoint *k, size_t off)
{
    int low = 0, high = model_ntensors(k->c);
    while (low < high) {
        int middle = (low + high) / 2;
        if (k->end[middle] <= off)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int checkpoint_read_range(const struct checkpoint *k, int slot, size_t off,
                          float *v, size_t n)
{
    CHECK(slot >= 0 && slot < (k->nslots ? k->nslots : 1));
    for (int i = tensor_of(k, off), all = model_ntensors(k->c);
         i < all && (i == 0 || k->end[i - 1] < off + n); i++) {
        struct tensor t;
        model_tensor(k->c, i, &t);
        size_t from = off > t.off ? off : t.off, to = t.off + t.n;
        to = to < off + n ? to : off + n;
        const struct safetensors_tensor *found;
        if (from >= to)
            continue;
        size_t first = from - t.off, count = to - from;
        float *at = v + (from - off);
        if (k->llmc ? llmc_read(k->llmc, i, first, count, at)
                    : find_vector(k, k->nslots ? k->slot_names[slot] : NULL,
                                  t.name, &found) ||
                          safetensors_read(k->file, found, first, count, at))
            return -1;
    }
    return 0;
}

int checkpoint_read(const char *path, const struct model_config *c,
                    float *params)
{
    struct checkpoint *k;
    if (checkpoint_open(&k, path, c, 0, NULL))
        return -1;
    int rc = checkpoint_read_range(k, 0, 0, params, model_nparams(c));
    checkpoint_close(&k);
    return rc;
}
