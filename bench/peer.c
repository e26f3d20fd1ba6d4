// peer.c - runs tests/oracle/gpt2_torch_speed.py, or gpt2_torch_gpu.py, for one
// configuration.

#include "bench/peer.h"

#include "base/base.h"
#include "base/process.h"
#include "base/share.h"

#include <stdio.h>

enum { SHELL_CANNOT_RUN = 126 }; // 127: not found

static const double most_s = 1800;

// Runs a script, and prints its lines. If PyTorch is missing, the script says
// so.
static void run(const char *python, const char *script,
                const struct workload_case *c, const char *more)
{
    const struct model_config *g = &c->config;
    char name[64], path[512], command[1024], line[512];
    if (text_into(name, sizeof name, "tests/oracle/%s", script) ||
        share_path(path, sizeof path, name) ||
        text_into(command, sizeof command,
                  "'%s' '%s' layers=%d heads=%d channels=%d "
                  "context=%d vocab=%d batch=%d tokens=%d %s",
                  python, path, g->layers, g->heads, g->channels, g->context,
                  g->vocab, c->batch, c->tokens, more))
        die("%s", fail_message());
    FILE *f = tmpfile();
    if (!f) {
        printf("#   PyTorch is left out: no file for what it says\n");
        return;
    }
    struct process p = {.out = fileno(f), .group = true};
    int status = process_shell(&p, command, most_s);
    rewind(f);
    while (fgets(line, sizeof line, f))
        printf("#   %s", line);
    fclose(f);
    if (status < 0)
        printf("#   PyTorch is left out: %s\n", fail_message());
    if (status >= SHELL_CANNOT_RUN)
        printf("#   PyTorch is left out: %s cannot be run; try: "
               "peer_python=/usr/bin/python3\n",
               python);
    fflush(stdout);
}

void peer_print(const struct workload_case *c, const char *python, double ms)
{
    char more[96];
    snprintf(more, sizeof more, "precision=%s threads=%d ours_ms=%.4f",
             dtype_name(c->precision), c->threads, ms);
    run(python ? python : BENCH_PYTHON, "gpt2_torch_speed.py", c, more);
}

void peer_print_cuda(const struct workload_case *c, int steps)
{
    char more[64];
    snprintf(more, sizeof more, "steps=%d", steps);
    run(BENCH_PYTHON, "gpt2_torch_gpu.py", c, more);
}
