// main.c - `lockstep`: finds the command and runs it.

#include "base/base.h"
#include "base/version.h"
#include "config/config.h"
#include "config/suggest.h"
#include "lockstep/commands.h"
#include "lockstep/man.h"

#include <string.h>

static const struct command *const commands[] = {
    &command_train,    &command_run,    &command_report,   &command_compare,
    &command_verify,   &command_sample, &command_doctor,   &command_keys,
    &command_pin,      &command_enter,  &command_bench,    &command_predict,
    &command_simulate, &command_watch,  &command_watchdog, &command_fit,
    &command_explain,  &command_demo,   &command_probe,    &command_plan,
    &command_prepare,
};

enum { NCOMMANDS = sizeof commands / sizeof *commands };

static int help(FILE *f)
{
    fprintf(f, "lockstep - train GPT-2 on one worker or many, and compare "
               "ways to synchronise them\n\n");
    for (int i = 0; i < NCOMMANDS; i++) {
        const struct command *c = commands[i];
        if (c->help)
            fprintf(f, "  lockstep %-8s %-26s %s\n", c->name, c->words,
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
    c->explain(f);
    if (c->all_keys)
        config_help(f);
    return 0;
}

// Prints a manual page or a completion script. The package installs them.
static int print_tables(const char *what, const char *which)
{
    return strcmp(what, "man") == 0
               ? man_print(stdout, which, commands, NCOMMANDS)
               : completion_print(stdout, which, commands, NCOMMANDS);
}

static int refuse_option(const struct command *c, const char *word)
{
    const char *setting = word + strspn(word, "-");
    if (strchr(setting, '='))
        return fail("%s %.60s: settings have no dashes; write %.60s", c->name,
                    word, setting);
    return fail("%s %.60s: no such option; try: lockstep %s --help", c->name,
                word, c->name);
}

static int call(const struct command *c, int nwords, char **words)
{
    for (int i = 0; i < nwords && c->explain; i++) {
        if (is_help(words[i]))
            return explain(c, stdout);
        if (c->hands_on)
            break;
        if (words[i][0] == '-')
            return refuse_option(c, words[i]);
    }
    if (nwords < c->least) {
        explain(c, stderr);
        return 2;
    }
    return c->run(nwords, words);
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
    if (argc < 2) {
        help(stderr);
        return 2;
    }
    bool asks = strcmp(argv[1], "help") == 0;
    if (is_help(argv[1]) || (asks && argc == 2))
        return help(stdout);
    if (strcmp(argv[1], "--version") == 0)
        return version_print("lockstep");
    bool tables = !strcmp(argv[1], "man") || !strcmp(argv[1], "completion");
    const struct command *c = tables ? NULL : find(argv[asks ? 2 : 1]);
    if (c && asks && c->explain)
        return explain(c, stdout);
    int status = c ? call(c, argc - 2, argv + 2) : -1;
    if (tables)
        status = print_tables(argv[1], argc > 2 ? argv[2] : "");
    if (status < 0)
        die("%s", fail_message());
    return status;
}
