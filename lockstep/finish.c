// finish.c - `lockstep report` makes tables, figures and the report of an
// experiment from the files of its runs.

#include "lockstep/commands.h"

#include "base/base.h"
#include "lockstep/argv.h"
#include "lockstep/figure.h"
#include "lockstep/study.h"

#include <string.h>

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
    char answer[1 << 13], verdict[1 << 14] = "";
    if (study_results(s))
        return -1;
    if (!s->nruns)
        return fail("%s: no run is finished", s->out);
    if (study_tables(s) || study_figures(s) < 0)
        return -1;
    if (s->nruns > 1)
        study_compare(s, verdict, sizeof verdict);
    if (study_report(s))
        return -1;
    study_answer(s, answer, sizeof answer);
    printf("\n%s: %s\n\n", s->exp->name, s->exp->title);
    show_file(s->out, "table.txt");
    // The answer is last, where a terminal still shows it.
    printf("\n%s\n%s%sreport: %s/report.html\n", verdict, answer,
           *answer ? "\n" : "", s->out);
    return 0;
}

static void explain(FILE *f)
{
    fprintf(f,
            "lockstep report DIR [figure=NAME] [size=WIDTHxHEIGHT]\n"
            "lockstep report RUN RUN .. out=DIR\n\n"
            "Writes tables, figures and report.html to DIR, the folder of one "
            "run or of an\nexperiment, finished or not. With figure= it draws "
            "only that figure, in the size given\nin pixels. With several runs "
            "it makes a new folder out=DIR, and treats each run as a\ncell of "
            "an experiment.\n"
            "  lockstep report runs/paper figure=throughput size=1600x900\n"
            "  lockstep report runs/a runs/b out=runs/both\n\nFigures:\n");
    figures_list(f);
}

struct asked {
    int nfolders;
    char *folders[ARGV_MAX];
    const char *out, *figure, *size;
};

static int read_words(struct asked *a, int nwords, char **words)
{
    const struct {
        const char *key;
        const char **to;
    } keys[] = {{"out=", &a->out},
                {"figure=", &a->figure},
                {"size=", &a->size}};
    for (int i = 0; i < nwords; i++) {
        bool taken = false;
        for (int k = 0; k < 3; k++) {
            size_t n = strlen(keys[k].key);
            if (strncmp(words[i], keys[k].key, n))
                continue;
            *keys[k].to = words[i] + n;
            taken = true;
        }
        if (taken)
            continue;
        if (a->nfolders == ARGV_MAX)
            return fail("report: more than %d folders", ARGV_MAX);
        a->folders[a->nfolders++] = words[i];
    }
    if (!a->nfolders)
        return fail("report: the folder is missing; try: lockstep report "
                    "--help");
    if (a->size && (!a->figure || figure_check_size(a->size)))
        return a->figure ? -1
                         : fail("size= requires figure=; try: figure=NAME");
    if (a->nfolders > 1 && !a->out)
        return fail("report: %d runs require a new folder for their report; "
                    "try: out=DIR",
                    a->nfolders);
    if (a->nfolders == 1 && a->out)
        return fail("out=%s: the report of one folder is written into that "
                    "folder; try: without out=",
                    a->out);
    return a->figure ? figures_check(a->figure) : 0;
}

static int draw_one(struct study *s, const struct asked *a)
{
    char out[CONFIG_PATH];
    if (!s->nruns)
        return fail("%s: no run is finished", s->out);
    if (text_into(out, sizeof out, "%s/figures", s->out) || study_tables(s) ||
        figure_draw(a->figure, s->out, out, a->size ? a->size : ""))
        return -1;
    printf("%s/%s.png\n%s/%s.svg\n", out, a->figure, out, a->figure);
    return 0;
}

static int report(int nwords, char **words)
{
    struct study *s;
    struct asked a = {0};
    if (read_words(&a, nwords, words) ||
        (a.out && study_join(a.nfolders, a.folders, a.out)) ||
        study_open(&s, a.out ? a.out : a.folders[0]))
        return -1;
    int rc = a.figure ? draw_one(s, &a) : study_finish(s);
    study_close(&s);
    return rc;
}

const struct command command_report = {
    .name = "report",
    .words = "DIR [RUN .. out=DIR]",
    .help = "make tables, figures and report.html of an experiment or of runs",
    .explain = explain,
    .least = 1,
    .run = report,
};
