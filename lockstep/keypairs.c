// keypairs.c - `lockstep keys DIR`: key pairs for curve=DIR; message/curve.h
// says what they are and who needs which.

#include "lockstep/commands.h"

#include "base/base.h"
#include "message/curve.h"

#include <stdio.h>

static int keys(int nwords, char **words)
{
    if (nwords != 1 || words[0][0] == '-') {
        printf("lockstep keys DIR\n\n"
               "Writes key pairs of servers and workers into DIR, for "
               "curve=DIR.\n");
        return nwords == 1 ? 0 : 2;
    }
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
    .run = keys,
};
