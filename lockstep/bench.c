// bench.c - `lockstep bench WHAT words...` runs a benchmark program: in its own
// process, or under mpirun, on this host or on emulated hosts.

#include "lockstep/commands.h"

#include "base/base.h"
#include "base/process.h"
#include "bench/workers.h"
#include "cluster/cluster.h"
#include "config/backends.h"
#include "launch/argv.h"
#include "launch/launch.h"
#include "launch/launch_mpi.h"
#include "launch/progress.h"
#include "launch/supervise.h"
#include "netns/netns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *what, *program, *help, *words;
    const char *word; // its first word, always passed; NULL: none
    bool mpi;         // runs under mpirun, because some rows need MPI
} benches[] = {
    {"cpu", "layer_perf",
     "a training step, each operation beside its lower bound",
     "[a|b|c|d|m|w ..] [fp32|bf16] [threads=N] [rounds=N] [detail=0] "
     "[peers=0] [peer_python=PATH]",
     NULL, false},
    {"gpu", "layer_perf", "the same on a GPU",
     "[model=gpt2] [batch=N] [fp32|tf32|bf16|fp16 ..] [steps=N] [tune=N] "
     "[attention=cudnn] [peers=0]",
     "device=cuda", false},
    {"sync", "sync_perf", "every backend, by size of the gradients",
     "[workers=N] [max_mb=N] [net=RATE[,hosts=N]: on emulated hosts] ..", NULL,
     true},
    {"collect", "collect_perf",
     "broadcast, reduce, all_gather and others, by carrier and size",
     "[workers=N] [op=VERB,..] [rows=ROW,..] [max_mb=N] [net=RATE] ..", NULL,
     true},
    {"squeeze", "squeeze_perf",
     "the time to compress gradients, beside a copy of them",
     "[mb=N] [rounds=N] [density=N] [levels=N] [squeeze_rank=N] "
     "[peers=0] [peer_python=PATH]",
     NULL, false},
    {"link", "link_perf",
     "rate and latency of a network, and a formula fitted to them",
     "[net=RATE] [out=FILE.json]", NULL, false},
};

enum {
    BENCHES = sizeof benches / sizeof *benches,
};

static void explain(FILE *f)
{
    fprintf(f, "lockstep bench WHAT [words ...]\n\n");
    for (int i = 0; i < BENCHES; i++)
        fprintf(f, "  %-9s%s\n             %s\n", benches[i].what,
                benches[i].help, benches[i].words);
    fprintf(f, "\nlockstep bench sync --help, and collect --help, list every "
               "key.\n");
}

static bool is(const char *word, const char *key)
{
    size_t n = strlen(key);
    return !strncmp(word, key, n) && word[n] == '=';
}

// Adds the interface that backends listen at on emulated hosts, and the host of
// a single server.
static int add_hosts(struct argv *a, const struct run *r,
                     const struct netns *net, const char *program)
{
    const struct backend *b;
    if (strcmp(program, "sync_perf") != 0)
        return argv_add(a, "iface=%s", netns_subnet());
    int own = r->workers < netns_hosts(net) ? r->workers : 0;
    for (int i = 0; (b = backend_at(i)); i++)
        if (backend_reads(b, "iface") &&
            argv_add(a, "%s.iface=%s", b->name, netns_subnet()))
            return -1;
    return argv_add(a, "server_host=%s", netns_name(net, own));
}

// Adds the user's words except net= and workers=. Each worker has one thread
// unless the user sets threads=. Without this, a worker would use all cores
// that `lockstep pin` gives it.
static int add_words(struct argv *a, const struct run *r,
                     const struct netns *net, const char *program, int nwords,
                     char **words)
{
    if (argv_add(a, "threads=1"))
        return -1;
    for (int i = 0; i < nwords; i++)
        if (!is(words[i], "net") && !is(words[i], "workers") &&
            argv_add(a, "%s", words[i]))
            return -1;
    return net ? add_hosts(a, r, net, program) : 0;
}

// Reads workers=, timeout= and net= from the words. The last one of each wins.
static int read_words(struct run *r, const char **rate, int nwords,
                      char **words)
{
    r->workers = 2;
    *rate = NULL;
    for (int i = 0; i < nwords; i++) {
        if ((is(words[i], "workers") || is(words[i], "timeout")) &&
            config_parse(r, 1, &words[i]))
            return -1;
        if (is(words[i], "net"))
            *rate = words[i] + 4;
    }
    int most = *rate ? NETNS_HOSTS - 1 : WORKERS_MOST;
    if (r->workers < 2 || r->workers > most)
        return fail("workers=%d: must be 2 .. %d%s", r->workers, most,
                    *rate ? " with net=" : "");
    return 0;
}

static const double check_s = 60;

// Lets the program check its words, outside mpirun: mpirun ends all processes
// when one ends, and an error message can get lost. Returns 0 if they are
// right, 1 after the program has printed what is wrong, or -1 after fail().
static int check_words(const char *program, const struct run *r, int nwords,
                       char **words)
{
    struct argv *a = mem_alloc(1, sizeof *a);
    int rc = !a || argv_add_program(a, program) ||
                     add_words(a, r, NULL, program, nwords, words) ||
                     argv_add(a, WORKERS_CHECK)
                 ? -1
                 : 0;
    if (!rc)
        rc = process_run(&(struct process){.words = a->at}, check_s);
    mem_free(a);
    return rc;
}

// Runs a program under mpirun. With net= each worker has an emulated host of
// its own, and one more host is for a single server.
static int mpi_bench(const char *program, int nwords, char **words)
{
    struct run r;
    const char *rate;
    struct netns *net = NULL;
    struct job *j = NULL;
    struct job_config config = {.children = 1, .log_path = "", .grace_s = 5};
    config_defaults(&r);
    if (read_words(&r, &rate, nwords, words))
        return -1;
    config.mpirun = (struct mpirun_limits){
        .ranks = r.workers,
        .start_s = LAUNCH_START_S + r.timeout,
        .quiet_s = config.grace_s + r.timeout,
    };
    int wrong = check_words(program, &r, nwords, words);
    if (wrong)
        return wrong;
    if (rate && netns_open(&net, rate, r.workers + 1))
        return -1;
    struct argv *a = mem_alloc(1, sizeof *a);
    int rc = !a || progress_open(&config.progress) || job_open(&j, &config) ||
                     add_words(a, &r, net, program, nwords, words) ||
                     launch_mpi(j, &r, net, program, a, 0, NULL)
                 ? -1
                 : job_run(j);
    job_close(&j);
    progress_close(&config.progress);
    netns_close(&net);
    mem_free(a);
    return rc;
}

static bool asks_for_help(int nwords, char **words)
{
    for (int i = 0; i < nwords; i++)
        if (!strcmp(words[i], "--help") || !strcmp(words[i], "-h"))
            return true;
    return false;
}

static int bench(int nwords, char **words)
{
    int i = 0;
    while (i < BENCHES && strcmp(words[0], benches[i].what) != 0)
        i++;
    if (i == BENCHES)
        return fail("bench %s: unknown; try: lockstep bench --help", words[0]);
    int rank, world;
    if (benches[i].mpi && !asks_for_help(nwords, words) &&
        !cluster_launched(&rank, &world))
        return mpi_bench(benches[i].program, nwords - 1, words + 1);
    struct argv *a = mem_alloc(1, sizeof *a);
    if (!a || argv_add_program(a, benches[i].program) ||
        (benches[i].word && argv_add(a, "%s", benches[i].word)) ||
        argv_add_all(a, nwords - 1, words + 1))
        return -1;
    setenv("GOMP_SPINCOUNT", "1000", 0); // as launch.c does
    execv(a->at[0], a->at);
    return fail("%s: %s", a->at[0], strerror(errno));
}

const struct command command_bench = {
    .name = "bench",
    .words = "cpu|gpu|sync|squeeze ..",
    .help = "measure this machine: computing, exchanging and the network",
    .explain = explain,
    .least = 1,
    .hands_on = true,
    .run = bench,
};
