// layer_perf.c - the time of a training step of GPT-2, and its lower bound.
//
//     layer_perf [a|b|c|d|m|w ...] [fp32|bf16] [threads=N] [rounds=N] [peers=0]
//                [peer_python=PATH]
//     layer_perf device=cuda [words]                          (layer_cuda.c)
//
// Our steps alternate with rounds of the lower bound (bound.c), so that other
// load of the machine slows down both equally. The bench prints medians and
// their ratio. Then a few steps run with a clock around every operation. If
// PyTorch is installed, it runs the same configurations
// (tests/oracle/gpt2_torch_speed.py). `m` measures the memory of a step of 124M
// parameters at 4 x 1024 tokens. `w` compares two workers that exchange
// gradients with two that do not (pair_perf.c).

#include "base/base.h"
#include "base/median.h"
#include "base/process.h"
#include "bench/bound.h"
#include "bench/layer_cuda.h"
#include "bench/op_time.h"
#include "bench/peer.h"
#include "bench/workload.h"
#include "model/cpu/product.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WARM = 2, TIMED = 3, NAMES = 8, PAIR_MOST_S = 3600 };

// In fp32, with one thread: layers, heads, channels, context, vocabulary.
#define CASE(name, batch, tokens, ...)                                         \
    {                                                                          \
        name, {__VA_ARGS__, 0, {0}}, batch, tokens, DTYPE_F32, 1, NULL, false, \
            0, false                                                           \
    }

static const struct workload_case cases[] = {
    CASE("a", 12, 64, 4, 4, 128, 64, 65),
    CASE("b", 8, 128, 4, 4, 256, 128, 256),
    CASE("c", 16, 256, 6, 6, 384, 256, 65),
    CASE("d", 4, 64, 12, 12, 768, 1024, 50257),
};

enum { CASES = sizeof cases / sizeof *cases };

struct plan {
    char names[NAMES + 1]; // of cases; 'm': memory; 'w': two workers
    bool fp32, bf16, peers, detail;
    const char *python; // runs PyTorch; NULL: the one that CMake found
    int threads;        // 0: first one thread, then two
    int rounds;
};

static double flop_a_step(const struct workload_case *c)
{
    return model_flop(&c->config, c->tokens) * c->batch * c->tokens;
}

// ---- the times of operations

static void print_bound(const struct bound_times *t)
{
    printf("#   the lower bound, product by product:\n");
    for (int i = 0; i < t->nlines; i++) {
        struct bound_line l = t->lines[i];
        printf("#   %-20s %5d x (%5d x %6d x %6d) %9.2f ms %6.0f GFLOP/s, "
               "in cache %6.0f  %s\n",
               l.is.name, l.is.count, l.is.m, l.is.n, l.is.k, l.seconds * 1e3,
               l.gflops, l.hot_gflops, l.call);
    }
}

static void print_ops(struct workload *s, const struct bound_times *t)
{
    struct op_time ops[OP_TIMES];
    double compute = 0, update = 0, counted = 0;
    op_time_start(s->is.threads);
    for (int i = 0; i < TIMED; i++) {
        struct workload_seconds took = workload_step(s);
        compute += took.compute;
        update += took.update;
    }
    int n = op_time_read(ops);
    op_time_start(0);
    double whole = compute + update, best = 0;
    for (int i = 0; i < t->nlines; i++)
        best = fmax(best, t->lines[i].hot_gflops);
    double bandwidth = 28.0 * (double)s->n / t->update * 1e-9;
    printf("#   our step, operation by operation (for comparison: the bound's "
           "best product %.0f GFLOP/s, AdamW's streams %.0f GB/s):\n",
           best, bandwidth);
    for (int i = 0; i < n; i++) {
        bool product = ops[i].flop > 0;
        double amount = product ? ops[i].flop : ops[i].bytes;
        if (!ops[i].inside)
            counted += ops[i].seconds;
        printf("#   %-20s %5d calls %9.2f ms %5.1f%% %8.1f %s\n", ops[i].name,
               ops[i].calls / TIMED, ops[i].seconds / TIMED * 1e3,
               100 * ops[i].seconds / whole, amount / ops[i].seconds * 1e-9,
               product ? "GFLOP/s" : "GB/s");
    }
    // The rest includes the update, but not cast_down(), which has its own
    // line.
    printf("#   %-20s %11s %9.2f ms %5.1f%%\n", "the rest: update, gaps", "",
           (whole - counted) / TIMED * 1e3, 100 * (1 - counted / whole));
}

// ---- a row

// Prints a row, and that of PyTorch.
static void measure(const struct plan *plan, const struct workload_case *c)
{
    struct bound *f;
    struct workload s;
    char words[96];
    double compute[BOUND_ROUNDS], update[BOUND_ROUNDS], step[BOUND_ROUNDS];
    bound_open(&f, c);
    if (workload_open(&s, c))
        die("%s", fail_message());
    for (int i = -WARM; i < plan->rounds; i++) {
        workload_step(&s);
        if (i < 0)
            continue;
        bound_round(f);
        struct workload_seconds took = workload_step(&s);
        compute[i] = took.compute;
        update[i] = took.update;
        step[i] = compute[i] + update[i];
    }
    struct bound_times t = bound_read(f);
    double ms = median(step, plan->rounds) * 1e3;
    double least = (t.products + t.update) * 1e3;
    printf("%-3s %-5s %7d %9.2f %9.2f %9.2f %9.2f %9.2f %9.2f %6.2f %9.0f "
           "%8.0f\n",
           c->name, dtype_name(c->precision), c->threads, t.products * 1e3,
           t.hot * 1e3, t.update * 1e3, median(compute, plan->rounds) * 1e3,
           median(update, plan->rounds) * 1e3, ms, ms / least,
           c->batch * c->tokens / ms * 1e3, flop_a_step(c) / ms * 1e-6);
    if (plan->detail) {
        print_ops(&s, &t);
        print_bound(&t);
    }
    fflush(stdout);
    workload_close(&s);
    bound_close(&f);
    snprintf(words, sizeof words, "precision=%s threads=%d ours_ms=%.4f",
             dtype_name(c->precision), c->threads, ms);
    if (plan->peers)
        peer_step(c, plan->python, "gpt2_torch_speed.py", words);
}

// ---- memory

// The bytes that a step needs at least.
static double needed(const struct workload_case *c)
{
    const struct model_config *g = &c->config;
    double rows = (double)c->batch * c->tokens, C = g->channels;
    double numbers = rows * C * (10.0 * g->layers + 1);
    double statistics = rows * (g->layers * (4.0 + g->heads) + 3);
    return 16.0 * (double)model_nparams(g) + 4 * statistics +
           (double)dtype_bytes(c->precision) * numbers;
}

// Runs in a process of its own, so that the peak is that of this step alone.
static void measure_memory(enum dtype precision, int threads)
{
    struct workload_case c = {.name = "m",
                              .config = {12, 12, 768, 1024, 50257, 0, {0}},
                              .batch = 4,
                              .tokens = 1024,
                              .precision = precision,
                              .threads = threads};
    fflush(stdout);
    pid_t child = fork();
    if (child < 0)
        die("fork: no process for the memory row");
    if (child == 0) {
        struct workload s;
        size_t before = mem_peak();
        if (workload_open(&s, &c))
            die("%s", fail_message());
        workload_step(&s);
        size_t peak = mem_peak();
        printf("%-3s %-5s %7d  peak %.0f MiB, needed %.0f MiB, ratio %.3f "
               "(goal 1.2); before the step %.0f MiB\n",
               c.name, dtype_name(precision), threads, (double)peak / 1048576,
               needed(&c) / 1048576, (double)peak / needed(&c),
               (double)before / 1048576);
        fflush(stdout);
        _exit(0);
    }
    int status;
    if (waitpid(child, &status, 0) != child || status != 0)
        die("the memory row's process ended with status %d", status);
}

// ---- two workers

// Runs pair_perf, which is in the folder of this program, under mpirun.
static void compare_workers(int rounds)
{
    char here[512], command[1024];
    ssize_t n = readlink("/proc/self/exe", here, sizeof here - 1);
    int cores = omp_get_num_procs();
    if (cores < 2) {
        printf("w   two workers: not measured, this process has %d core\n",
               cores);
        return;
    }
    here[n < 0 ? 0 : n] = '\0';
    char *slash = strrchr(here, '/');
    if (!slash)
        die("/proc/self/exe: does not say where this program is");
    *slash = '\0';
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    if (text_into(command, sizeof command,
                  "mpirun -n 2 --oversubscribe --bind-to none '%s/pair_perf' "
                  "rounds=%d",
                  here, rounds))
        die("%s", fail_message());
    fflush(stdout);
    if (process_shell(&(struct process){0}, command, PAIR_MOST_S) != 0)
        printf("w   two workers: not measured, this command failed: %s\n",
               command);
}

// ---- main

static int parse(struct plan *p, int nwords, char **words)
{
    for (int i = 0; i < nwords; i++) {
        const char *w = words[i];
        if (!strcmp(w, "fp32"))
            p->bf16 = false;
        else if (!strcmp(w, "bf16"))
            p->fp32 = false;
        else if (!strcmp(w, "peers=0"))
            p->peers = false;
        else if (!strcmp(w, "detail=0"))
            p->detail = false;
        else if (!strncmp(w, "peer_python=", 12) && !strchr(w, '\''))
            p->python = w + 12;
        else if (!strncmp(w, "threads=", 8))
            p->threads = atoi(w + 8);
        else if (!strncmp(w, "rounds=", 7))
            p->rounds = atoi(w + 7);
        else if (strlen(w) <= NAMES && strspn(w, "abcdmw") == strlen(w))
            snprintf(p->names, sizeof p->names, "%s", w);
        else
            return fail("%s: unknown; try: letters of abcdmw, fp32 or bf16, "
                        "threads=N, rounds=N, detail=0, peers=0, "
                        "peer_python=PATH",
                        w);
    }
    if (p->threads < 0)
        return fail("threads=%d; try: 1 or more", p->threads);
    return p->rounds >= 5 && p->rounds <= BOUND_ROUNDS
               ? 0
               : fail("rounds=%d; try: 5 to %d", p->rounds, BOUND_ROUNDS);
}

static bool runs(const struct plan *p, enum dtype precision, int threads)
{
    return (precision == DTYPE_F32 ? p->fp32 : p->bf16) &&
           (!p->threads || p->threads == threads);
}

static int on_cpu(int nwords, char **words)
{
    static const enum dtype formats[] = {DTYPE_F32, DTYPE_BF16};
    struct plan plan = {.names = "abcdmw",
                        .fp32 = true,
                        .bf16 = true,
                        .peers = true,
                        .detail = true,
                        .rounds = 7};
    if (parse(&plan, nwords, words))
        die("%s", fail_message());
    int most = plan.threads ? plan.threads : omp_get_num_procs() < 2 ? 1 : 2;
    printf(
        "# times in ms; bound = products + adamw (in_cache: the products "
        "with factors in the cache); step = compute + update; ratio = step / "
        "bound\n"
        "#   precision threads products  in_cache     adamw   compute    "
        "update      step  ratio  tokens/s  GFLOP/s\n");
    if (plan.bf16 && product_casts_up(DTYPE_BF16))
        printf("# bf16: this processor has no instructions for it; all "
               "products, ours and the bound's, are in fp32\n");
    for (int i = 0; i < CASES; i++)
        for (int f = 0; strchr(plan.names, *cases[i].name) && f < 2; f++)
            for (int threads = 1; threads <= most; threads++) {
                struct workload_case c = cases[i];
                c.precision = formats[f];
                c.threads = threads;
                if (!runs(&plan, c.precision, threads))
                    continue;
                measure(&plan, &c);
            }
    for (int f = 0; strchr(plan.names, 'm') && f < 2; f++)
        if (runs(&plan, formats[f], most))
            measure_memory(formats[f], most);
    if (strchr(plan.names, 'w') && plan.fp32)
        compare_workers(plan.rounds);
    return 0;
}

static const struct {
    const char *device;
    int (*run)(int nwords, char **words); // returns the exit status
} devices[] = {
    {"device=cpu", on_cpu},
#if defined(LOCKSTEP_CUDA)
    {"device=cuda", layer_cuda},
#endif
};

enum { DEVICES = sizeof devices / sizeof *devices };

static const char help[] =
    "lockstep bench cpu [a|b|c|d|m|w ..] [fp32|bf16] [threads=N] [rounds=N] "
    "..\n"
    "lockstep bench gpu [model=gpt2] [batch=N] [fp32|tf32|bf16|fp16 ..] "
    "[steps=N] ..\n"
    "\n"
    "Compares the time of a training step with a lower bound: the time of "
    "its matrix\nproducts and of its update alone. If PyTorch is installed, "
    "its time is\nprinted, too.\n"
    "\n"
    "  a, b, c, d  models of 0.8, 3.3, 10.8 and 124 M parameters\n"
    "  m           memory of a step of 124 M parameters\n"
    "  w           two workers that exchange gradients, and two that do not\n"
    "              (letters can be combined, as in ab; default: all)\n"
    "  threads     number of threads; default: first 1, then 2\n"
    "  rounds      a round is a step and one run of the bound; default 7;\n"
    "              times are medians over rounds\n"
    "  detail=0    without each operation's time\n"
    "  peers=0     without PyTorch\n"
    "  peer_python path of another python3 whose PyTorch is compared\n"
    "\n"
    "  model, batch, steps   only on a GPU; defaults gpt2, 32, 20\n";

int main(int argc, char **argv)
{
    log_as_lockstep();
    streams_begin();
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
            return fputs(help, stdout) < 0;
    if (argc < 2 || strncmp(argv[1], "device=", 7) != 0)
        return on_cpu(argc - 1, argv + 1);
    for (int i = 0; i < DEVICES; i++)
        if (!strcmp(argv[1], devices[i].device))
            return devices[i].run(argc - 2, argv + 2);
    die("%s: this build measures on %s%s", argv[1], devices[0].device,
        DEVICES > 1 ? " and device=cuda" : "; try: -DLOCKSTEP_CUDA=ON");
}
