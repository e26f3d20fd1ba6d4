// man.c - prints manual pages, from the --help of the commands and the table of
// keys.

#include "lockstep/man.h"

#include "base/base.h"
#include "base/version.h"
#include "config/backends.h"
#include "config/keys.h"
#include "lockstep/argv.h"

#include <errno.h>
#include <string.h>

// ---- roff

// Prints text with roff's special characters escaped.
static void put(FILE *f, const char *text)
{
    for (; *text; text++) {
        if (*text == '\\')
            fputs("\\e", f);
        else if (*text == '-')
            fputs("\\-", f);
        else
            fputc(*text, f);
    }
}

// Prints a line of text. \& keeps roff from taking a line that begins with a
// dot or a quote as a request.
static void put_line(FILE *f, const char *line)
{
    if (*line == '.' || *line == '\'')
        fputs("\\&", f);
    put(f, line);
    fputc('\n', f);
}

// Prints the rest of the file `from`, line by line without filling.
static void put_lines(FILE *f, FILE *from)
{
    char line[1024];
    fputs(".nf\n", f);
    while (fgets(line, sizeof line, from)) {
        line[strcspn(line, "\n")] = '\0';
        put_line(f, line);
    }
    fputs(".fi\n", f);
}

static void begin(FILE *f, const char *name, const char *title,
                  const char *what, const char *synopsis)
{
    fprintf(f,
            ".TH %s 1 \"\" \"lockstep %s\" Lockstep\n.SH NAME\n%s \\- %s\n"
            ".SH SYNOPSIS\n",
            title, version_number, name, what);
    put_line(f, synopsis);
}

static void end(FILE *f, const char *others)
{
    static const char *const rows[][2] = {
        {"LOCKSTEP_SECRET",
         "The secret of the job. Its sockets accept only processes that know "
         "it. The launcher makes one. Programs that are started by hand on one "
         "host use their user's secret, in ~/.local/state/lockstep/secret. "
         "Programs of several hosts or users must all get the same one."},
        {"LOCKSTEP_SECRET_FILE",
         "A file with the secret. Only its owner may be able to read it."},
        {"LOCKSTEP_RSH",
         "The command that reaches the hosts of hosts=FILE, instead of ssh."},
        {"LOCKSTEP_PLOTS", "A folder with other scripts for the figures."},
    };
    fputs(".SH ENVIRONMENT\n", f);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fprintf(f, ".TP\n.B %s\n", rows[i][0]);
        put_line(f, rows[i][1]);
    }
    fputs(".SH EXIT STATUS\n0: success. 1: an error, printed in one line. "
          "2: no command. 128 + N: stopped by signal N.\n.SH SEE ALSO\n",
          f);
    put_line(f, others);
}

// ---- lockstep

// Prints what explain() or, if it is NULL, the program prints for --help.
static int put_help(FILE *f, const char *name, void (*explain)(FILE *to))
{
    FILE *said = tmpfile();
    int rc = said ? 0 : fail("%s --help: %s", name, strerror(errno));
    if (!rc && explain)
        explain(said);
    else if (!rc)
        rc = argv_help(name, said);
    if (!said)
        return rc;
    rewind(said);
    put_lines(f, said);
    fclose(said);
    return rc;
}

static int add_command(FILE *f, const struct command *c)
{
    fputs(".SS ", f);
    put_line(f, c->name);
    put_line(f, c->help);
    fputs(".PP\n", f);
    return put_help(f, c->name, c->explain);
}

static int print_lockstep(FILE *f, const struct command *const *all, int n)
{
    begin(f, "lockstep", "LOCKSTEP",
          "train GPT-2 on one worker or many, and compare ways to synchronise "
          "them",
          "lockstep COMMAND [key=value] ...");
    fputs(".SH DESCRIPTION\nEach worker computes gradients. sync=NAME chooses "
          "the backend, which is how several workers agree on the next "
          "parameters:\n",
          f);
    for (int i = 0; backend_at(i); i++) {
        fprintf(f, ".TP\n.B sync=%s\n", backend_at(i)->name);
        put_line(f, backend_at(i)->help);
    }
    fputs(".PP\ntrainer(1) lists all settings.\n.SH COMMANDS\n", f);
    for (int i = 0; i < n; i++)
        if (all[i]->help && add_command(f, all[i]))
            return -1;
    end(f, "trainer(1), ps_server(1)");
    return 0;
}

// ---- trainer and ps_server

static int print_trainer(FILE *f)
{
    begin(f, "trainer", "TRAINER", "one worker of a job that trains GPT-2",
          "trainer [FILE.ini] key=value ...");
    fputs(".SH DESCRIPTION\nlockstep train starts all workers of a job, and "
          "its servers. You can also start them with mpirun, srun or torchrun, "
          "or by hand. Settings are key=value words, or lines of an INI file. "
          "The last one of a key wins. The value in brackets is the "
          "default.\n.SH SETTINGS\n",
          f);
    key_manual(f, &run_keys, put_line);
    end(f, "lockstep(1), ps_server(1)");
    return 0;
}

static int print_server(FILE *f)
{
    static const char name[] = "ps_server";
    begin(f, name, "PS_SERVER", "a parameter server of one job",
          "ps_server [key=value] ...");
    fputs(".SH DESCRIPTION\n", f);
    if (put_help(f, name, NULL))
        return -1;
    end(f, "lockstep(1), trainer(1)");
    return 0;
}

int man_print(FILE *f, const char *program, const struct command *const *all,
              int n)
{
    if (!strcmp(program, "lockstep"))
        return print_lockstep(f, all, n);
    if (!strcmp(program, "trainer"))
        return print_trainer(f);
    if (!strcmp(program, "ps_server"))
        return print_server(f);
    return fail("man %.60s: no such page; try: lockstep, trainer, ps_server",
                program);
}
