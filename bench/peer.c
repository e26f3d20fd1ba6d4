// peer.c - runs tests/oracle/gpt2_torch_speed.py, or gpt2_torch_gpu.py, for one
// configuration.

#include "bench/peer.h"

#include "base/base.h"
#include "base/share.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

enum { SHELL_CANNOT_RUN = 126 }; // 127: not found

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
    FILE *f = popen(command, "r");
    if (!f) {
        printf("#   PyTorch is left out: no shell to start %s\n", script);
        return;
    }
    while (fgets(line, sizeof line, f))
        printf("#   %s", line);
    int status = pclose(f);
    if (WIFEXITED(status) && WEXITSTATUS(status) >= SHELL_CANNOT_RUN)
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
