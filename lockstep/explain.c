// explain.c - `lockstep explain` writes an HTML page that plays one step of
// runs, or one exchange message by message.

#include "lockstep/argv.h"
#include "lockstep/commands.h"
#include "lockstep/explain_runs.h"

#include "base/base.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static const char program[] = "explain_way";

static int run_program(int nwords, char **words)
{
    struct argv *a = mem_alloc(1, sizeof *a);
    if (!a || argv_add_program(a, program) || argv_add_all(a, nwords, words))
        return -1;
    execv(a->at[0], a->at);
    return fail("%s: %s", a->at[0], strerror(errno));
}

static void explain_explain(FILE *f)
{
    fprintf(f, "lockstep explain RUN [RUN ..] [step=N] [out=explain.html] "
               "[svg=FILE]\n"
               "  Writes an HTML page that plays one step of each run on one "
               "clock, from their traces.\n  It shows which worker computes or "
               "sends, which communication is hidden behind\n  computing, and "
               "the bytes sent so far beside the law's. It replaces an old "
               "file.\n"
               "    step=N      the step to show; 0: the one of median length\n"
               "    out=FILE    the page (explain.html)\n"
               "    svg=FILE    write an animated picture, too\n"
               "\n");
    if (argv_help(program, f))
        log_line("%s", fail_message());
}

static int explain(int nwords, char **words)
{
    return explain_runs_are_asked(words[0]) ? explain_runs(nwords, words)
                                            : run_program(nwords, words);
}

const struct command command_explain = {
    .name = "explain",
    .words = "RUN [RUN ..] | WAY [KEY=..]",
    .help = "write a page that plays one step, or one exchange",
    .explain = explain_explain,
    .least = 1,
    .run = explain,
};
