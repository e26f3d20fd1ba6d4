// finish.c - `lockstep report`: all that follows from what runs have left.

#include "lockstep/commands.h"

#include "base/base.h"
#include "lockstep/study.h"

static void show_file(const char *out, const char *name)
{
    char path[CONFIG_PATH], line[1024];
    if (text_into(path, sizeof path, "%s/%s", out, name))
        return;
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        fputs(line, stdout);
    if (f)
        fclose(f);
}

int study_finish(struct study *s)
{
    char verdict[4096] = "";
    if (study_results(s))
        return -1;
    if (!s->nruns)
        return fail("%s: no run is finished", s->out);
    if (study_tables(s) || study_figures(s) < 0)
        return -1;
    if (s->nruns > 1) // else there is nothing to compare
        study_compare(s, verdict, sizeof verdict);
    if (study_report(s))
        return -1;
    printf("\n%s: %s\n\n", s->exp->name, s->exp->title);
    show_file(s->out, "table.txt");
    printf("\n%s\nreport: %s/report.html\n", verdict, s->out);
    return 0;
}

static void explain(FILE *f)
{
    fprintf(f, "lockstep report DIR\n\nTables, figures and DIR/report.html of "
               "an experiment (finished or not) or of one run.\n");
}

static int report(int nwords, char **words)
{
    struct study *s;
    if (nwords > 1)
        return fail("report: one folder, not also %s", words[1]);
    if (study_open(&s, words[0]))
        return -1;
    int rc = study_finish(s);
    study_close(&s);
    return rc;
}

const struct command command_report = {
    .name = "report",
    .words = "DIR",
    .help = "tables, figures and report.html of an experiment or a run",
    .explain = explain,
    .least = 1,
    .run = report,
};
