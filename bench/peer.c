// peer.c - runs scripts of tests/oracle that time PyTorch.

#include "bench/peer.h"

#include "base/base.h"
#include "base/process.h"
#include "base/share.h"

#include <stdio.h>

enum { SHELL_CANNOT_RUN = 126 }; // 127: not found

static const double most_s = 1800;

void peer_run(const char *python, const char *script, const char *words)
{
    char name[64], path[512], command[2048], line[512];
    python = python && *python ? python : BENCH_PYTHON;
    if (text_into(name, sizeof name, "tests/oracle/%s", script) ||
        share_path(path, sizeof path, name) ||
        text_into(command, sizeof command, "'%s' '%s' %s", python, path, words))
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

void peer_step(const struct workload_case *c, const char *python,
               const char *script, const char *more)
{
    const struct model_config *g = &c->config;
    char words[512];
    if (text_into(words, sizeof words,
                  "layers=%d heads=%d channels=%d context=%d vocab=%d batch=%d "
                  "tokens=%d %s",
                  g->layers, g->heads, g->channels, g->context, g->vocab,
                  c->batch, c->tokens, more))
        die("%s", fail_message());
    peer_run(python, script, words);
}
