// main.c - `lockstep`: finds the command and runs it.

#include "base/base.h"
#include "base/version.h"
#include "config/config.h"
#include "config/suggest.h"
#include "launch/study.h"
#include "lockstep/commands.h"

#include <stdlib.h>
#include <string.h>

// In the order of --help.
// clang-format off
static const struct command *const commands[] = {
    &command_train, &command_run, &command_report, &command_compare,
    &command_verify, &command_sample, &command_doctor, &command_keys,
    &command_pin, &command_enter, &command_bench, &command_predict,
    &command_simulate, &command_watch, &command_watchdog, &command_fit,
    &command_explain, &command_demo, &command_probe, &command_plan,
    &command_prepare, &command_man, &command_completion, &command_tell,
    NULL,
};
// clang-format on

enum { NCOMMANDS = sizeof commands / sizeof *commands - 1 };

static int help(FILE *f)
{
    fprintf(f, "lockstep - train GPT-2 on one worker or many, and compare "
               "ways to synchronise them\n\n");
    for (int i = 0; i < NCOMMANDS; i++) {
        const struct command *c = commands[i];
        if (c->help)
            fprintf(f, "  lockstep %-10s %-25s %s\n", c->name, c->words,
                    c->help);
    }
    fprintf(f, "\n  lockstep COMMAND --help says more. To begin: lockstep "
               "train\n  To complete commands and keys in bash (or zsh): "
               "source <(lockstep completion bash)\n");
    return 0;
}

static bool is_help(const char *word)
{
    return !strcmp(word, "--help") || !strcmp(word, "-h");
}

static int explain(const struct command *c, FILE *f)
{
    int rc = study_explain(c, f);
    if (c->all_keys)
        config_help(f);
    return rc;
}

static int refuse_option(const struct command *c, const char *word)
{
    const char *setting = word + strspn(word, "-");
    if (strchr(setting, '=') && strncmp(setting, "help=", 5) != 0)
        return fail("%s %.60s: settings have no dashes; try: %.60s", c->name,
                    word, setting);
    return fail("%s %.60s: no such option; try: lockstep %s --help", c->name,
                word, c->name);
}

static int call(const struct command *c, int nwords, char **words)
{
    for (int i = 0; i < nwords && (c->help || c->explain); i++) {
        if (is_help(words[i]))
            return explain(c, stdout);
        if (c->hands_on)
            break;
        if (words[i][0] == '-')
            return refuse_option(c, words[i]);
    }
    if (nwords < c->least) {
        int rc = explain(c, stderr);
        return rc ? rc : 2;
    }
    if (c->run_all)
        return c->run_all(commands, nwords, words);
    return c->run ? c->run(nwords, words)
                  : study_become(c->name, nwords, words);
}

static const struct command *find(const char *name)
{
    const char *names[NCOMMANDS];
    char nearest[SUGGEST_TEXT];
    int n = 0;
    for (int i = 0; i < NCOMMANDS; i++) {
        if (strcmp(name, commands[i]->name) == 0)
            return commands[i];
        if (commands[i]->help)
            names[n++] = commands[i]->name;
    }
    fail("unknown command %.60s%s; all: lockstep --help", name,
         suggest_text(nearest, "; nearest: ", name, names, n));
    return NULL;
}

int main(int argc, char **argv)
{
    streams_begin();
    // `env -i`: mpirun looks for ssh in PATH alone, and not where sh would
    if (!getenv("PATH"))
        setenv("PATH", "/usr/local/bin:/usr/bin:/bin", 1);
    if (argc < 2) {
        help(stderr);
        return 2;
    }
    bool asks = strcmp(argv[1], "help") == 0;
    if (is_help(argv[1]) || (asks && argc == 2))
        return help(stdout);
    if (strcmp(argv[1], "--version") == 0)
        return version_print("lockstep");
    const struct command *c = find(argv[asks ? 2 : 1]);
    int status = !c                ? -1
                 : asks && c->help ? explain(c, stdout)
                                   : call(c, argc - 2, argv + 2);
    if (status < 0)
        die("%s", fail_message());
    return status;
}
