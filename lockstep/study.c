// study.c - the commands run, report, compare and verify. They are a Python
// package, since all that they do is to start programs and to read files:
//
//     SOURCE/study/lockstep                       in the source tree
//     PREFIX/lib/python3/dist-packages/lockstep   installed
//
// python3 -I looks for modules neither in the current folder nor in that of a
// run, which may come from a stranger.

#include "lockstep/study.h"

#include "base/base.h"
#include "base/process.h"
#include "base/share.h"
#include "config/config.h"
#include "lockstep/argv.h"
#include "lockstep/commands.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Drawing all figures of a large experiment takes minutes.
static const double most_s = 3600;

static const char begin[] = "import sys; sys.path.insert(0, sys.argv.pop(1)); "
                            "from lockstep.main import main; sys.exit(main())";

// Debian's Python has the packages that ./install lists; another python3 that
// comes first in PATH may not have them.
static const char *python(void)
{
    static const char debian[] = "/usr/bin/python3";
    const char *chosen = getenv("LOCKSTEP_PYTHON");
    return chosen && *chosen           ? chosen
           : access(debian, X_OK) == 0 ? debian
                                       : "python3";
}

// Writes the folder that has the package.
static int find_package(char path[CONFIG_PATH])
{
    char file[CONFIG_PATH];
    static const char *const places[] = {"study",
                                         "../../lib/python3/dist-packages"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (share_path(path, CONFIG_PATH, places[i]) ||
            text_into(file, sizeof file, "%s/lockstep/main.py", path))
            return -1;
        else if (access(file, R_OK) == 0)
            return 0;
    return fail("%s/lockstep: no such package; try: install Lockstep as a "
                "whole",
                path);
}

static int fill(struct argv *a, const char *command, int nwords,
                char *const *words)
{
    char path[CONFIG_PATH], own[CONFIG_PATH];
    if (find_package(path) || share_program(own, sizeof own, "lockstep") ||
        argv_add(a, "%s", python()) || argv_add(a, "-I") || argv_add(a, "-c") ||
        argv_add(a, "%s", begin) || argv_add(a, "%s", path) ||
        argv_add(a, "%s", command) || argv_add_all(a, nwords, words))
        return -1;
    return setenv("LOCKSTEP_PROGRAM", own, 1)
               ? fail("LOCKSTEP_PROGRAM: %s", strerror(errno))
               : 0;
}

// Becomes the package's program. Returns only after fail().
static int become(const char *command, int nwords, char *const *words)
{
    struct argv *a = mem_alloc(1, sizeof *a);
    int rc = a ? fill(a, command, nwords, words) : -1;
    if (!rc) {
        execvp(a->at[0], a->at);
        rc = fail("%s: %s; it runs and reads experiments; try: ./install",
                  a->at[0], strerror(errno));
    }
    mem_free(a);
    return rc;
}

int study_call(FILE *to, const char *command, const char *word,
               const char *next)
{
    struct argv *a = mem_alloc(1, sizeof *a);
    // argv_add_all() copies the words.
    char *words[] = {(char *)(uintptr_t)word, (char *)(uintptr_t)next};
    fflush(to);
    int rc = a ? fill(a, command, !!word + !!next, words) : -1;
    if (!rc) {
        struct process p = {.words = a->at, .out = fileno(to)};
        rc = process_run(&p, most_s);
    }
    mem_free(a);
    return rc > 0 ? fail("lockstep %s failed", command) : rc;
}

static void explain(FILE *f, const char *command)
{
    if (study_call(f, command, "--help", NULL))
        log_line("%s", fail_message());
}

static void explain_run(FILE *f)
{
    explain(f, "run");
}

static void explain_report(FILE *f)
{
    explain(f, "report");
}

static void explain_compare(FILE *f)
{
    explain(f, "compare");
}

static void explain_verify(FILE *f)
{
    explain(f, "verify");
}

static int run(int nwords, char **words)
{
    return become("run", nwords, words);
}

static int report(int nwords, char **words)
{
    return become("report", nwords, words);
}

static int compare(int nwords, char **words)
{
    return become("compare", nwords, words);
}

static int verify(int nwords, char **words)
{
    return become("verify", nwords, words);
}

const struct command command_run = {
    .name = "run",
    .words = "FILE.ini [key=value] ..",
    .help = "run an experiment, with tables, figures and a report",
    .explain = explain_run,
    .least = 1,
    .run = run,
};

const struct command command_report = {
    .name = "report",
    .words = "DIR [RUN .. out=DIR]",
    .help = "make tables, figures and report.html of an experiment or of runs",
    .explain = explain_report,
    .least = 1,
    .run = report,
};

const struct command command_compare = {
    .name = "compare",
    .words = "DIR",
    .help = "check that an experiment's runs trained the same thing",
    .explain = explain_compare,
    .least = 1,
    .run = compare,
};

const struct command command_verify = {
    .name = "verify",
    .words = "RUN",
    .help = "check what a run left: steps, sums, checkpoints and their losses",
    .explain = explain_verify,
    .least = 1,
    .run = verify,
};
