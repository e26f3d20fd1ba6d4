// keypairs.c - `lockstep keys DIR` writes key pairs for curve=DIR.
// message/curve.h says which process needs which key.

#include "lockstep/commands.h"

#include "base/base.h"
#include "message/curve.h"

#include <stdio.h>

static void explain(FILE *f)
{
    fprintf(f, "lockstep keys DIR\n\n"
               "Writes key pairs of servers and workers into DIR, for "
               "curve=DIR.\n");
}

static int keys(int nwords, char **words)
{
    if (nwords > 1)
        return fail("keys: takes one folder, not also %s", words[1]);
    if (curve_make(words[0]))
        return -1;
    printf("keys for servers and workers: %s (use: curve=%s)\n", words[0],
           words[0]);
    return 0;
}

const struct command command_keys = {
    .name = "keys",
    .words = "DIR",
    .help = "make CURVE keys, for jobs that encrypt and authenticate",
    .explain = explain,
    .least = 1,
    .run = keys,
};
