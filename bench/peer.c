// peer.c - runs tests/oracle/gpt2_torch_speed.py for one configuration.

#include "bench/peer.h"

#include "base/base.h"

#include <stdio.h>
#include <string.h>

void peer_print(const struct subject_case *c)
{
    const struct model_config *g = &c->config;
    char command[1024], line[512];
    if (text_into(command, sizeof command,
                  "%s %s/tests/oracle/gpt2_torch_speed.py layers=%d heads=%d "
                  "channels=%d context=%d vocab=%d batch=%d tokens=%d "
                  "precision=%s threads=%d",
                  BENCH_PYTHON, BENCH_SOURCE, g->layers, g->heads, g->channels,
                  g->context, g->vocab, c->batch, c->tokens,
                  dtype_name(c->precision), c->threads))
        die("%s", fail_message());
    FILE *f = popen(command, "r");
    if (!f) {
        printf("#   no PyTorch: no shell to start it\n");
        return;
    }
    while (fgets(line, sizeof line, f))
        printf("#   %s", line);
    pclose(f);
    fflush(stdout);
}
