// config_json.c - Hugging Face's config.json, the file beside the tensors.
//
// from_pretrained() opens a folder with this file and model.safetensors.

#include "model/config_json.h"
#include "model/checkpoint.h"

#include "base/base.h"
#include "base/file.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

// GPT-2's <|endoftext|>, the last word of its own vocabulary. transformers
// takes it for eos and bos if config.json does not name them.
enum { MAX_TEXT = 1 << 16, END_OF_TEXT = 50256 };

// Reads a file into text, and puts a NUL after it. Returns the text's length, 0
// if there is no such file, or -1 after fail().
static ssize_t read_text(const char *path, char *text)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return 0;
    ssize_t n = read(fd, text, MAX_TEXT);
    int cause = errno;
    close(fd);
    if (n < 0)
        return fail("%s: %s", path, strerror(cause));
    if (n == MAX_TEXT)
        return fail("%s: longer than %d bytes", path, MAX_TEXT - 1);
    text[n] = '\0';
    return n;
}

static int parse_heads(const char *path, const char *text, size_t n, int *heads)
{
    cJSON *json = cJSON_ParseWithLength(text, n);
    const cJSON *e = cJSON_GetObjectItemCaseSensitive(json, "n_head");
    int status = 0;
    if (!json)
        status = fail("%s: not JSON; try: remove it or mend it", path);
    else if (e && (!cJSON_IsNumber(e) || !(e->valuedouble >= 1) ||
                   e->valuedouble > INT_MAX ||
                   e->valuedouble != (double)(int)e->valuedouble))
        status = fail("%s: n_head is not a positive number", path);
    else if (e)
        *heads = (int)e->valuedouble;
    cJSON_Delete(json);
    return status;
}

int config_json_heads(const char *path, int *heads)
{
    char beside[PATH_MAX];
    const char *slash = strrchr(path, '/');
    *heads = 0;
    if (text_into(beside, sizeof beside, "%.*sconfig.json",
                  slash ? (int)(slash - path) + 1 : 0, path))
        return -1;
    char *text = mem_alloc(MAX_TEXT, 1);
    if (!text)
        return -1;
    ssize_t n = read_text(beside, text);
    int status = n < 0 ? -1 : 0;
    if (n > 0)
        status = parse_heads(beside, text, (size_t)n, heads);
    mem_free(text);
    return status;
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
    struct iovec piece = {text, strlen(text)};
    return file_replace(path, &piece, 1);
}
