// bench.c - `lockstep bench WHAT words...`: become the program that measures.

#include "lockstep/commands.h"

#include "base/base.h"
#include "lockstep/argv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *what, *program, *help;
} benches[] = {
    {"cpu", "layer_perf",
     "a training step beside the least it could take: [a|b|c|d|m ...] "
     "[fp32|bf16] [threads=N] [rounds=N] [detail=0] [peers=0]"},
    {"gpu", "gpu_perf",
     "the same on a GPU, beside its peak and each operation's floor: "
     "[model=gpt2] [batch=N] [fp32|tf32|bf16|fp16 ...] [steps=N]"},
    {"sync", "sync_perf",
     "every backend by message size: workers=N, or under mpirun"},
};

enum { BENCHES = sizeof benches / sizeof *benches };

static int help(void)
{
    printf("lockstep bench WHAT [words ...]\n\n");
    for (int i = 0; i < BENCHES; i++)
        printf("  %-6s%s\n", benches[i].what, benches[i].help);
    return 0;
}

static int bench(int nwords, char **words)
{
    if (nwords < 1 || !strcmp(words[0], "--help") || !strcmp(words[0], "-h"))
        return help();
    int i = 0;
    while (i < BENCHES && strcmp(words[0], benches[i].what) != 0)
        i++;
    if (i == BENCHES)
        return fail("bench %s: not one that there is; all: lockstep bench "
                    "--help",
                    words[0]);
    struct argv *a = mem_alloc(1, sizeof *a);
    if (!a || argv_add_program(a, benches[i].program) ||
        argv_add_all(a, nwords - 1, words + 1))
        return -1;
    setenv("GOMP_SPINCOUNT", "1000", 0); // as launch.c does
    execv(a->at[0], a->at);
    return fail("%s: %s", a->at[0], strerror(errno));
}

const struct command command_bench = {
    .name = "bench",
    .words = "cpu|gpu|sync [words] ..",
    .help = "measure this machine beside the floor, peers and laws",
    .run = bench,
};
