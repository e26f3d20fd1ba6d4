// sample.c - `lockstep sample DIR` writes text with a checkpoint.
//
// For each token it computes the model's logits after the text so far, divides
// them by the temperature, keeps the top_k largest, and draws from the softmax
// of these. The model sees only the last T tokens, where T is its context.

#include "lockstep/commands.h"

#include "base/base.h"
#include "base/file.h"
#include "base/rng.h"
#include "config/config.h"
#include "config/suggest.h"
#include "config/value.h"
#include "data/data.h"
#include "model/checkpoint.h"
#include "train/whole.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct settings {
    const char *prompt;
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

static void explain(FILE *f)
{
    fprintf(
        f,
        "lockstep sample DIR [key=value] ...\n\n"
        "Writes text with the model in DIR, the folder of a run or of one of "
        "its checkpoints.\n\n"
        "  key          default    meaning\n"
        "  prompt       a newline  the text to continue\n"
        "  tokens       400        how many tokens to write, 0..1000000\n"
        "  temperature  0.8        0..100; 0: always the likeliest token\n"
        "  top_k        40         draw from so many of the likeliest tokens, "
        "0..1048576; 0: all\n"
        "  seed         1          of the random numbers, "
        "0..9007199254740991\n"
        "  threads      0          0..4096; 0: one thread, or all cores for a "
        "large model\n");
}

static int set_whole(const char *key, const char *value, int64_t max,
                     int64_t *out)
{
    int64_t n;
    if (value_whole(value, &n) || n < 0 || n > max)
        return fail("%s=%s: must be a whole number, 0 .. %lld", key, value,
                    (long long)max);
    *out = n;
    return 0;
}

static int set(struct settings *s, const char *key, const char *value)
{
    static const char *const keys[] = {"prompt", "tokens", "temperature",
                                       "top_k",  "seed",   "threads"};
    if (strcmp(key, "tokens") == 0)
        return set_whole(key, value, 1000000, &s->tokens);
    if (strcmp(key, "top_k") == 0)
        return set_whole(key, value, 1 << 20, &s->top_k);
    if (strcmp(key, "seed") == 0)
        return set_whole(key, value, ((int64_t)1 << 53) - 1, &s->seed);
    if (strcmp(key, "threads") == 0)
        return set_whole(key, value, 4096, &s->threads);
    if (strcmp(key, "temperature") == 0) {
        double t;
        if (value_real(value, &t) || !(t >= 0 && t <= 100))
            return fail("temperature=%s: must be a number, 0 .. 100", value);
        s->temperature = t;
        return 0;
    }
    if (strcmp(key, "prompt") == 0) {
        s->prompt = value;
        return value[0] ? 0 : fail("prompt=: empty; try: without prompt=");
    }
    char nearest[SUGGEST_TEXT];
    return fail("unknown key %.60s%s; all: lockstep sample --help", key,
                suggest_text(nearest, "; nearest: ", key, keys, 6));
}

// Reads the file folder/name as text. The caller frees it with free(). NULL
// after fail().
static char *read_text(const char *folder, const char *name)
{
    char path[CONFIG_PATH], *text = NULL;
    size_t capacity = 0;
    if (text_into(path, sizeof path, "%s/%s", folder, name))
        return NULL;
    FILE *f = file_open(path);
    if (!f) {
        fail("%s; try: a folder that lockstep train save=N wrote",
             fail_message());
        return NULL;
    }
    if (getdelim(&text, &capacity, '\0', f) < 0) {
        fail("%s: empty or not readable", path);
        free(text);
        text = NULL;
    }
    fclose(f);
    return text;
}

// Finds the folder of the checkpoint: `dir` itself, or the newest checkpoint of
// the run in `dir`.
static int find_checkpoint(const char *dir, char out[CONFIG_PATH])
{
    char weights[CONFIG_PATH];
    struct stat st;
    if (text_into(weights, sizeof weights, "%s/model.safetensors", dir))
        return -1;
    if (stat(weights, &st) == 0)
        return text_into(out, CONFIG_PATH, "%s", dir);
    char *latest = read_text(dir, "latest");
    if (!latest)
        return -1;
    int n = -1, used = 0, err;
    latest[strcspn(latest, "\n")] = '\0';
    if (sscanf(latest, "checkpoint-%9d%n", &n, &used) == 1 && !latest[used])
        err = text_into(out, CONFIG_PATH, "%s/%s", dir, latest);
    else
        err = fail("%s/latest: says %.60s, which is no checkpoint of this run",
                   dir, latest);
    free(latest);
    return err;
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
    char weights[CONFIG_PATH];
    if (whole_check_model(folder))
        return fail("%s; try: another checkpoint of lockstep train save=N",
                    fail_message());
    if (text_into(weights, sizeof weights, "%s/model.safetensors", folder) ||
        checkpoint_config(weights, &s->config))
        return -1;
    s->params = mem_alloc(model_nparams(&s->config), sizeof *s->params);
    if (!s->params || checkpoint_read(weights, &s->config, s->params))
        return -1;
    char *saved = read_text(folder, "symbols.txt");
    if (!saved)
        return -1;
    int err = data_symbols_load(&s->symbols, saved);
    free(saved);
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
    if (putchar('\n') == EOF || fflush(stdout))
        return fail("stdout: %s", strerror(errno));
    return 0;
}

static int sample(int nwords, char **words)
{
    struct sampler s = {.set = {"\n", 0.8, 400, 40, 1, 0}};
    const char *dir = NULL;
    for (int i = 0; i < nwords; i++) {
        char *equals = strchr(words[i], '=');
        if (equals && access(words[i], F_OK)) { // no folder of this name
            *equals = '\0';
            if (set(&s.set, words[i], equals + 1))
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
