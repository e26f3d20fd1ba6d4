// explain.c - `lockstep explain` writes an HTML page that plays one step of
// runs (study/lockstep/explain.py), or one exchange message by message.

#include "lockstep/argv.h"
#include "lockstep/commands.h"
#include "lockstep/study.h"

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
    if (study_call(f, "explain", "--help", NULL) || argv_help(program, f))
        log_line("%s", fail_message());
}

static int explain(int nwords, char **words)
{
    char path[CONFIG_PATH];
    bool run = !text_into(path, sizeof path, "%s/run.json", words[0]) &&
               access(path, F_OK) == 0;
    return run ? study_become("explain", nwords, words)
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
