// sample.c - `lockstep sample DIR` writes text with a checkpoint.
//
// For each token it computes the model's logits after the text so far, divides
// them by the temperature, keeps the top_k largest, and draws from the softmax
// of these. The model sees only the last T tokens, where T is its context.

#include "lockstep/commands.h"

#include "base/base.h"
#include "base/file.h"
#include "base/rng.h"
#include "config/keys.h"
#include "data/data.h"
#include "model/checkpoint.h"
#include "train/folder.h"
#include "train/whole.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_SYMBOLS = 1 << 26 }; // bytes

struct settings {
    const char *prompt;
    char row[CONFIG_PATH]; // unused: of prompt= in the table, for --help alone
    double temperature;
    int64_t tokens, top_k, seed, threads;
};

struct sampler {
    struct settings set;
    struct model_config config;
    struct data *symbols;
    struct model *model;
    float *params, *logits;
    float *sorted;   // (V) scratch, for sorted logits and for probabilities
    int32_t *window; // (T) the last tokens of the text so far
    int n;           // tokens in the window
};

#define AT(member) offsetof(struct settings, member), false

static const struct key rows[] = {
    {"sample", "prompt", "", KEY_TEXT, AT(row), .unit = "text",
     .help = "what to continue; without it, a newline"},
    {"sample", "tokens", "400", KEY_INT64, AT(tokens), .max = 1000000,
     .help = "how many to write"},
    {"sample", "temperature", "0.8", KEY_NUMBER, AT(temperature), .max = 100,
     .help = "0: always the likeliest token"},
    {"sample", "top_k", "40", KEY_INT64, AT(top_k), .max = 1 << 20,
     .help = "draw from so many of the likeliest tokens; 0: from all"},
    {"sample", "seed", "1", KEY_INT64, AT(seed), .max = 0x1p53 - 1,
     .help = "of the random numbers"},
    {"sample", "threads", "0", KEY_INT64, AT(threads), .max = 4096,
     .help = "0: one thread, or all cores for a large model"},
};

static const struct key_table keys = {rows, sizeof rows / sizeof *rows,
                                      "lockstep sample --help"};

static void explain(FILE *f)
{
    fprintf(f, "lockstep sample DIR [key=value] ...\n\n"
               "Writes text with the model in DIR, the folder of a run or of "
               "one of its checkpoints.\n");
    key_help(f, &keys);
}

// Finds the folder of the checkpoint: `dir` itself, or the newest checkpoint of
// the run in `dir`.
static int find_checkpoint(const char *dir, char out[CONFIG_PATH])
{
    int newest = folder_latest(dir);
    if (folder_has(dir, "model.safetensors"))
        return text_into(out, CONFIG_PATH, "%s", dir);
    if (newest >= 0)
        return text_into(out, CONFIG_PATH, "%s/checkpoint-%d", dir, newest);
    if (!folder_has(dir, "latest"))
        return fail("%s: no checkpoint; try: a folder that lockstep train "
                    "save=N wrote",
                    dir);
    char *name = folder_read(dir, "latest");
    if (name) {
        name[strcspn(name, "\n")] = '\0';
        fail("%s/latest: says %.60s, which is no checkpoint of this run", dir,
             name);
    }
    mem_free(name);
    return -1;
}

// Chooses one thread for a small model: one token is too little work to divide.
static int choose_threads(const struct sampler *s)
{
    const size_t large = 1000000000; // multiplications a token
    size_t work = model_nparams(&s->config) * (size_t)s->config.context;
    if (s->set.threads > 0)
        return (int)s->set.threads;
    return work > large ? 0 : 1;
}

static int open_model(struct sampler *s)
{
    size_t vocab = (size_t)s->config.vocab;
    struct model_job job = {
        .config = s->config,
        .precision = DTYPE_F32,
        .batch = 1,
        .tokens = s->config.context,
        .threads = choose_threads(s),
        .params = s->params,
    };
    s->logits = mem_alloc(vocab, sizeof *s->logits);
    s->sorted = mem_alloc(vocab, sizeof *s->sorted);
    s->window = mem_alloc((size_t)s->config.context, sizeof *s->window);
    if (!s->logits || !s->sorted || !s->window || model_open(&s->model, &job))
        return -1;
    model_params_changed(s->model);
    return 0;
}

// Reads the checkpoint in `folder`, unless it is damaged.
static int load(struct sampler *s, const char *folder)
{
    char path[CONFIG_PATH];
    if (whole_check(folder, false))
        return fail("%s; try: another checkpoint of lockstep train save=N",
                    fail_message());
    if (text_into(path, sizeof path, "%s/model.safetensors", folder) ||
        checkpoint_config(path, &s->config))
        return -1;
    s->params = mem_alloc(model_nparams(&s->config), sizeof *s->params);
    if (!s->params || checkpoint_read(path, &s->config, s->params))
        return -1;
    char *saved = text_into(path, sizeof path, "%s/symbols.txt", folder)
                      ? NULL
                      : file_read(path, MOST_SYMBOLS);
    int err = saved ? data_symbols_load(&s->symbols, saved) : -1;
    mem_free(saved);
    return err;
}

// A running job may remove the checkpoint while it is read; then the file
// `latest` names another one, which is read instead.
static int open_sampler(struct sampler *s, const char *dir)
{
    char folder[CONFIG_PATH], newer[CONFIG_PATH], why[512];
    if (find_checkpoint(dir, folder))
        return -1;
    while (load(s, folder)) {
        snprintf(why, sizeof why, "%s", fail_message());
        if (find_checkpoint(dir, newer) || !strcmp(folder, newer))
            return fail("%s", why);
        strcpy(folder, newer);
        mem_free(s->params);
        s->params = NULL;
    }
    return open_model(s);
}

static void close_sampler(struct sampler *s)
{
    model_close(&s->model);
    if (s->symbols)
        data_close(&s->symbols);
    mem_free(s->window);
    mem_free(s->sorted);
    mem_free(s->logits);
    mem_free(s->params);
}

static int descending(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x < y) - (x > y);
}

// Returns the least logit of the top_k tokens.
static float threshold(struct sampler *s)
{
    size_t vocab = (size_t)s->config.vocab, k = (size_t)s->set.top_k;
    if (k == 0 || k >= vocab)
        return -INFINITY;
    memcpy(s->sorted, s->logits, vocab * sizeof *s->sorted);
    qsort(s->sorted, vocab, sizeof *s->sorted, descending);
    return s->sorted[k - 1];
}

static int32_t likeliest(const struct sampler *s)
{
    int32_t best = 0;
    for (int32_t v = 1; v < s->config.vocab; v++) {
        if (s->logits[v] > s->logits[best])
            best = v;
    }
    return best;
}

// Makes the i-th draw from s->logits.
static int32_t choose(struct sampler *s, int64_t i)
{
    int32_t best = likeliest(s), last = best;
    if (s->set.temperature == 0)
        return best;
    float least = threshold(s);
    double sum = 0, top = (double)s->logits[best];
    for (int32_t v = 0; v < s->config.vocab; v++) {
        bool kept = s->logits[v] >= least;
        double p = exp(((double)s->logits[v] - top) / s->set.temperature);
        s->sorted[v] = kept ? (float)p : 0;
        sum += (double)s->sorted[v];
    }
    uint64_t key = rng_key((uint64_t)s->set.seed, 0);
    double left = rng_uniform(key, (uint64_t)i) * sum;
    for (int32_t v = 0; v < s->config.vocab; v++) {
        if (s->sorted[v] == 0)
            continue;
        last = v;
        left -= (double)s->sorted[v];
        if (left < 0)
            break;
    }
    return last;
}

static void push(struct sampler *s, int32_t token)
{
    if (s->n == s->config.context) {
        memmove(s->window, s->window + 1,
                (size_t)(s->n - 1) * sizeof *s->window);
        s->n--;
    }
    s->window[s->n++] = token;
}

static int begin(struct sampler *s)
{
    size_t most = strlen(s->set.prompt) + 8;
    int32_t *tokens = mem_alloc(most, sizeof *tokens);
    if (!tokens)
        return -1;
    long n = data_encode(s->symbols, s->set.prompt, strlen(s->set.prompt),
                         tokens, most);
    for (long i = 0; i < n; i++)
        push(s, tokens[i]);
    mem_free(tokens);
    return n < 0 ? -1 : n > 0 ? 0 : fail("prompt=: has no token");
}

static int generate(struct sampler *s)
{
    fputs(s->set.prompt, stdout);
    for (int64_t i = 0; i < s->set.tokens; i++) {
        char text[256];
        if (model_logits(s->model, s->window, s->n, s->logits))
            return -1;
        int32_t token = choose(s, i);
        fwrite(text, 1, data_decode(s->symbols, token, text), stdout);
        fflush(stdout);
        push(s, token);
    }
    putchar('\n');
    return 0;
}

// Reads a word key=value. A prompt may be of any length and have newlines.
static int set(struct settings *s, char *word)
{
    if (strncmp(word, "prompt=", 7))
        return key_words(&keys, s, 1, &word);
    s->prompt = word + 7;
    return *s->prompt ? 0 : fail("prompt=: empty; try: without prompt=");
}

static int sample(int nwords, char **words)
{
    struct sampler s = {.set.prompt = "\n"};
    const char *dir = NULL;
    key_defaults(&keys, &s.set);
    for (int i = 0; i < nwords; i++) {
        if (strchr(words[i], '=') && access(words[i], F_OK)) { // no such folder
            if (set(&s.set, words[i]))
                return -1;
        } else if (dir) {
            return fail("sample: takes one folder, not also %s", words[i]);
        } else {
            dir = words[i];
        }
    }
    if (!dir)
        return fail("sample: the folder of a run is missing; try: lockstep "
                    "sample --help");
    int err = open_sampler(&s, dir) || begin(&s) || generate(&s);
    close_sampler(&s);
    return err ? -1 : 0;
}

const struct command command_sample = {
    .name = "sample",
    .words = "DIR [key=value] ..",
    .help = "write text from a checkpoint",
    .explain = explain,
    .least = 1,
    .run = sample,
};
