// demo.c - `lockstep demo` runs the script `demo` of this installation.

#include "lockstep/commands.h"

#include "base/base.h"
#include "base/share.h"
#include "config/config.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static void explain(FILE *f)
{
    fprintf(f, "lockstep demo\n\n"
               "A demonstration of some minutes. A tiny GPT-2 and a small one "
               "learn to write C.\nThen two workers train a GPT-2 with each "
               "backend, and a report compares them.\nAll results are written "
               "to runs/.\n");
}

static int demo(int nwords, char **words)
{
    char path[CONFIG_PATH];
    if (nwords > 0)
        return fail("demo: takes no words, not %s", words[0]);
    if (share_path(path, sizeof path, "demo"))
        return -1;
    execl(path, path, (char *)NULL);
    return fail("%s: %s", path, strerror(errno));
}

const struct command command_demo = {
    .name = "demo",
    .words = "",
    .help = "a small GPT-2 learns to write C, in some minutes",
    .explain = explain,
    .run = demo,
};
