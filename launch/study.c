// study.c - the commands of a Python package, since all that they do is to ask,
// to start programs, and to read and write text:
//
//     SOURCE/study/lockstep                       in the source tree
//     PREFIX/lib/python3/dist-packages/lockstep   installed
//
// python3 -I looks for modules neither in the current folder nor in that of a
// run, which may come from a stranger. With -X utf8 files and their names are
// UTF-8 in every locale.

#include "launch/study.h"

#include "base/base.h"
#include "base/process.h"
#include "base/share.h"
#include "config/config.h"
#include "launch/argv.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const double help_s = 60;

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
        argv_add(a, "%s", python()) || argv_add_text(a, "-I -X utf8 -c") ||
        argv_add(a, "%s", begin) || argv_add(a, "%s", path) ||
        argv_add(a, "%s", command) || argv_add_all(a, nwords, words))
        return -1;
    return setenv("LOCKSTEP_PROGRAM", own, 1)
               ? fail("LOCKSTEP_PROGRAM: %s", strerror(errno))
               : 0;
}

int study_become(const char *command, int nwords, char *const *words)
{
    struct argv *a = mem_alloc(1, sizeof *a);
    int rc = a ? fill(a, command, nwords, words) : -1;
    if (!rc) {
        execvp(a->at[0], a->at);
        rc = fail("%s: %s; it runs this command; try: %s", a->at[0],
                  strerror(errno),
                  getenv("LOCKSTEP_PYTHON") ? "another LOCKSTEP_PYTHON"
                                            : "apt-get install python3");
    }
    mem_free(a);
    return rc;
}

// Writes to `to` what --help says about a command of the package. Returns as
// study_explain() does.
static int call_help(FILE *to, const char *command)
{
    char help[] = "--help", *const words[] = {help};
    struct argv *a = mem_alloc(1, sizeof *a);
    int rc = a ? fill(a, command, 1, words) : -1;
    if (!rc) {
        struct process p = {.words = a->at, .out = fileno(to)};
        rc = process_run(&p, help_s);
    }
    mem_free(a);
    return rc;
}

int study_explain(const struct command *c, FILE *f)
{
    if (!c->explain)
        return call_help(f, c->name);
    c->explain(f);
    return 0;
}

const struct command command_run = {
    .name = "run",
    .words = "FILE.ini [key=value] ..",
    .help = "run an experiment, with tables, figures and a report",
    .least = 1};

const struct command command_report = {
    .name = "report",
    .words = "DIR [RUN .. out=DIR]",
    .help = "make tables, figures and report.html of an experiment or of runs",
    .least = 1};

const struct command command_compare = {
    .name = "compare",
    .words = "DIR",
    .help = "check that an experiment's runs trained the same thing",
    .least = 1};

const struct command command_verify = {
    .name = "verify",
    .words = "RUN",
    .help = "check what a run left: steps, sums, checkpoints and their losses",
    .least = 1};

const struct command command_watch = {
    .name = "watch",
    .words = "DIR [key=value] ..",
    .help = "show all workers of a run while it is going on",
    .least = 1};

const struct command command_predict = {
    .name = "predict",
    .words = "workers=N,.. link=25gbit",
    .help = "predict which backend is fastest on a cluster, by how much",
    .least = 1};

const struct command command_fit = {
    .name = "fit",
    .words = "memory=2gb model=gpt2 ..",
    .help = "which backends fit into a worker's memory, with which batch",
    .least = 1};

const struct command command_simulate = {
    .name = "simulate",
    .words = "workers=2,64,1024",
    .help = "simulate an exchange on up to thousands of workers"};

const struct command command_man = {
    .name = "man",
    .words = "PAGE",
    .help = "show the manual page of lockstep, trainer or ps_server",
    .least = 1};

const struct command command_completion = {
    .name = "completion",
    .words = "SHELL",
    .help = "print a script with which bash or zsh completes commands and keys",
    .least = 1};

const struct command command_explain = {
    .name = "explain",
    .words = "RUN .. | WAY [KEY=..]",
    .help = "write a page that plays one step, or one exchange",
    .least = 1};
