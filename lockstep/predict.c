// predict.c - `lockstep predict model=gpt2 workers=64 link=25gbit`: which way of
// agreeing will win for a model on links that are known, and by how much.

#include "lockstep/commands.h"

#include "base/base.h"
#include "config/backends.h"
#include "lockstep/argv.h"
#include "lockstep/forecast.h"
#include "lockstep/result.h"
#include "model/model.h"
#include "sync/derive.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const backends[] = {"sps", "dps", "allreduce", "ring"};

enum { BACKENDS = sizeof backends / sizeof *backends, STEPS = 3 };

struct question {
    struct run run;
    struct links links;
    struct model_config model;
    struct forecast_job job;
    const char *link;
    double alpha_us, compute_ms;
};

static void explain(FILE *f)
{
    fprintf(
        f,
        "lockstep predict workers=N link=LINK [key=value] ...\n\n"
        "The time of an exchange and of a step under each backend, by the laws "
        "and the\nlink, beside what the fit of the link leaves open.\n\n"
        "  link        a rate, as 25gbit, of links that nobody has measured; "
        "or a file:\n"
        "                lockstep bench link out=FILE         the link\n"
        "                lockstep bench sync workers=2 out=FILE   each backend "
        "on it\n"
        "  alpha_us    25 us latency of a message, with link=RATE\n"
        "  compute_ms  of forward, backward and update of one worker's step; "
        "without it,\n"
        "              measured here: %d steps of one worker on this machine\n\n"
        "Of train's keys: model and its sizes, batch, accum, precision, sync "
        "(one backend\nonly), wire, servers (dps: on hosts of their own), "
        "algorithm, bucket_mb,\nfirst_bucket_mb.\n"
        "  lockstep predict model=gpt2 workers=64 link=25gbit compute_ms=900\n",
        STEPS);
}

// ---- computing, measured

static _Noreturn void become(const struct argv *a)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null >= 0)
        dup2(null, 1);
    execv(a->at[0], a->at);
    _exit(127);
}

// Train `STEPS` steps of one worker in a child, into `folder`.
static int train(const struct question *q, const char *folder)
{
    const struct run *r = &q->run;
    static const char *const formats[] = {"fp32", "bf16", "fp16"};
    struct argv *a = mem_alloc(1, sizeof *a);
    int status = 0;
    if (!a || argv_add_program(a, "lockstep") || argv_add(a, "train") ||
        argv_add(a, "model=%s", r->model) ||
        argv_add(a, "layers=%d", q->model.layers) ||
        argv_add(a, "heads=%d", q->model.heads) ||
        argv_add(a, "channels=%d", q->model.channels) ||
        argv_add(a, "context=%d", q->model.context) ||
        argv_add(a, "vocab_size=%d", q->model.vocab) ||
        argv_add(a, "precision=%s", formats[r->precision]) ||
        argv_add(a, "batch=%d", r->batch) ||
        argv_add(a, "accum=%d", r->accum) ||
        (r->data[0] && argv_add(a, "data=%s", r->data)) ||
        (r->threads && argv_add(a, "threads=%d", r->threads)) ||
        argv_add(a, "steps=%d", STEPS) || argv_add(a, "warmup=0") ||
        argv_add(a, "eval=0") || argv_add(a, "log=0") ||
        argv_add(a, "out=%s", folder)) {
        mem_free(a);
        return -1;
    }
    pid_t pid = fork();
    if (pid == 0)
        become(a);
    mem_free(a);
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        return fail("predict: %s", strerror(errno));
    return status
               ? fail("predict: the training that was to be measured failed; "
                      "try: compute_ms=")
               : 0;
}

static int remove_folder(const char *folder)
{
    char command[CONFIG_PATH];
    return text_into(command, sizeof command, "rm -rf '%s'", folder) ||
           system(command);
}

static int measure(struct question *q)
{
    char folder[] = "/tmp/lockstep-predict-XXXXXX";
    struct result r = {0};
    if (!mkdtemp(folder))
        return fail("%s: %s", folder, strerror(errno));
    log_line("computing %d steps of one worker here", STEPS);
    int rc = train(q, folder) || result_read(&r, folder) ? -1 : 0;
    if (!rc) {
        const double *s = r.share; // of kind_names: begin and end are "other"
        double step = s[0] + s[1] + s[2] + s[4];
        q->job.compute_s = r.value[METRIC_STEP_S];
        q->job.backward_s = s[2] / step * q->job.compute_s / q->run.accum;
    }
    return remove_folder(folder) || rc ? -1 : 0;
}

// ---- the question

static void override(int *value, int given)
{
    if (given)
        *value = given;
}

static int read_model(struct question *q)
{
    const struct run *r = &q->run;
    struct model_config *c = &q->model;
    if (model_preset(r->model, c))
        return -1;
    override(&c->layers, r->layers);
    override(&c->heads, r->heads);
    override(&c->channels, r->channels);
    override(&c->context, r->context);
    override(&c->vocab, r->vocab_size);
    if (c->vocab == 0)
        c->vocab = 256; // bytes
    if (model_check(c))
        return -1;
    struct tensor layer; // the first behind wte and wpe
    model_tensor(c, 2, &layer);
    q->job.embeddings = (double)layer.off;
    q->job.params = (double)model_nparams(c);
    return 0;
}

// The keys of backends that a forecast needs.
static const struct backend asker = {
    .name = "predict",
    .keys = (const char *const[]){"wire", "update", "servers", "bucket_mb",
                                  "first_bucket_mb", "algorithm", NULL},
};

static int read_settings(struct question *q)
{
    struct forecast_job *j = &q->job;
    const struct backend *servers = backend_row("dps");
    struct sync_settings set = q->run.settings;
    if (backend_check(&asker, &q->run))
        return -1;
    sync_derive(&set, servers, q->run.workers, (size_t)j->params);
    j->bytes_each = (double)dtype_bytes(set.wire);
    j->held = set.update == UPDATER_SERVER;
    j->servers = q->run.settings.servers.count;
    j->bucket = set.bucket_mb * 1048576 / sizeof(float);
    j->first_bucket = set.first_bucket_mb * 1048576 / sizeof(float);
    j->algorithm = set.algorithm;
    return 0;
}

static int read_number(const char *word, const char *key, double *out)
{
    const char *value = word + strlen(key) + 1;
    char *end;
    double v = strtod(value, &end);
    if (*end || end == value || !(v > 0 && v < 1e9))
        return fail("%s: want a positive number", word);
    *out = v;
    return 0;
}

static bool is(const char *word, const char *key)
{
    size_t n = strlen(key);
    return !strncmp(word, key, n) && word[n] == '=';
}

static int ask(struct question *q, int nwords, char **words)
{
    char **rest = mem_alloc((size_t)nwords, sizeof *rest);
    int n = 0, rc = rest ? 0 : -1;
    config_defaults(&q->run);
    q->run.workers = 4;
    q->alpha_us = 25;
    for (int i = 0; !rc && i < nwords; i++) {
        if (is(words[i], "link"))
            q->link = words[i] + 5;
        else if (is(words[i], "alpha_us"))
            rc = read_number(words[i], "alpha_us", &q->alpha_us);
        else if (is(words[i], "compute_ms"))
            rc = read_number(words[i], "compute_ms", &q->compute_ms);
        else
            rest[n++] = words[i];
    }
    if (!rc)
        rc = config_parse(&q->run, n, rest);
    mem_free(rest);
    if (rc)
        return -1;
    if (!q->link || q->run.workers < 2)
        return fail("predict: want %s; try: lockstep predict --help",
                    q->link ? "workers=2 or more" : "link=");
    return links_read(&q->links, q->link, q->alpha_us * 1e-6) ||
                   read_model(q) || read_settings(q)
               ? -1
               : 0;
}

// ---- the answer

static void print_question(const struct question *q)
{
    const struct forecast_job *j = &q->job;
    const struct link_fit *tcp = &q->links.fits[0];
    printf("%s: %.4g M gradients of %g bytes, %.4g MB; %d workers of %g tokens "
           "a step\n",
           q->run.model, j->params * 1e-6, j->bytes_each,
           j->params * j->bytes_each * 1e-6, j->workers, j->tokens);
    if (tcp->n)
        printf("link: fitted to %d workers, %s\n", q->links.workers, q->link);
    else
        printf("link: %s, not measured: %.4g Gbit/s of payload and %g us "
               "assumed\n",
               q->link, tcp->link.bytes_per_s * 8e-9, tcp->link.alpha_s * 1e6);
    printf("computing: %.4g ms a step, %.4g of them backward (%s)\n\n",
           j->compute_s * 1e3, j->backward_s * 1e3,
           q->compute_ms > 0 ? "compute_ms=; backward two thirds"
                             : "measured here");
    printf("%-10s %12s %12s %12s %12s %9s %11s %10s\n", "", "link", "exchange",
           "step apart", "overlapped", "+-", "tokens/s", "efficiency");
}

static void print_row(const char *name, const struct forecast *f)
{
    printf("%-10s %9.4g MB %9.4g ms %9.4g ms %9.4g ms %8.1f%% %11.4g %9.1f%%\n",
           name, f->link_bytes * 1e-6, f->exchange_s * 1e3, f->apart_s * 1e3,
           f->overlapped_s * 1e3,
           50 * (f->most_s - f->least_s) / f->overlapped_s, f->tokens_per_s,
           f->efficiency * 100);
}

// Names the fastest, and what the others take beside it.
static void print_winner(const struct forecast *f, const bool *has)
{
    int best = -1;
    for (int i = 0; i < BACKENDS; i++)
        if (has[i] && (best < 0 || f[i].overlapped_s < f[best].overlapped_s))
            best = i;
    printf("\n%s is fastest", backends[best]);
    for (int i = 0; i < BACKENDS; i++)
        if (has[i] && i != best)
            printf("; %s takes %.1f%% longer%s", backends[i],
                   100 * (f[i].overlapped_s / f[best].overlapped_s - 1),
                   f[i].least_s <= f[best].most_s ? " (too close to call)"
                                                  : "");
    printf("\n");
}

static int answer(const struct question *q)
{
    struct forecast f[BACKENDS];
    bool has[BACKENDS], one = strcmp(q->run.sync, "local") != 0;
    print_question(q);
    for (int i = 0; i < BACKENDS; i++) {
        has[i] = !one || !strcmp(q->run.sync, backends[i]);
        if (has[i] && forecast(&q->job, backends[i], &q->links, &f[i]))
            return -1;
        if (has[i])
            print_row(backends[i], &f[i]);
    }
    if (!one)
        print_winner(f, has);
    return 0;
}

static int predict(int nwords, char **words)
{
    struct question *q = mem_alloc(1, sizeof *q);
    int rc = q ? ask(q, nwords, words) : -1;
    if (!rc) {
        const struct run *r = &q->run;
        struct forecast_job *j = &q->job;
        j->workers = r->workers;
        j->tokens = (double)r->batch * r->accum * q->model.context;
        j->compute_s = q->compute_ms * 1e-3;
        j->backward_s = j->compute_s * 2 / 3 / r->accum;
        rc = (q->compute_ms == 0 && measure(q)) || answer(q) ? -1 : 0;
    }
    mem_free(q);
    return rc;
}

const struct command command_predict = {
    .name = "predict",
    .words = "workers=N link=25gbit|FILE",
    .help = "which way of agreeing will win on a cluster, and by how much",
    .explain = explain,
    .least = 1,
    .run = predict,
};
