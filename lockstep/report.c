// report.c - writes DIR/report.html: one file with everything in it.

#include "lockstep/study.h"

#include "base/base.h"
#include "base/file.h"
#include "lockstep/html.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

static bool is_share(enum metric m)
{
    return m == METRIC_UTIL_TOTAL || m == METRIC_UTIL_MEAN ||
           m == METRIC_CPU_MEAN || m == METRIC_GPU_UTIL;
}

// Writes a value. Shares are percentages.
static void put_value(FILE *f, enum metric m, double v, int digits)
{
    if (is_share(m) && !isnan(v))
        fprintf(f, "%.0f%%", 100 * v);
    else
        html_number(f, v, digits);
}

static void put_median(FILE *f, const struct study *s, int c, enum metric m,
                       double scale)
{
    int n;
    struct range v = study_range(s, c, m, &n);
    fputs("<td>", f);
    put_value(f, m, v.median * scale, 4);
    if (n > 1 && v.least < v.most) {
        fputs("<br><span class=\"soft\">", f);
        put_value(f, m, v.least * scale, 3);
        fputs("&ndash;", f);
        put_value(f, m, v.most * scale, 3);
        fputs("</span>", f);
    }
    fputs("</td>", f);
}

static void put_plain(FILE *f, double v, int digits)
{
    fputs("<td>", f);
    html_number(f, v, digits);
    fputs("</td>", f);
}

static void begin_row(FILE *f, const struct result *r)
{
    fputs("<tr><td>", f);
    html_text(f, r->cell);
    if (r->oversubscribed)
        fputs(" <span class=\"warn\" title=\"more threads than cores\">&#8225;"
              "</span>",
              f);
    if (*r->pace) {
        fputs(" <span class=\"warn\">slept: pace=", f);
        html_text(f, r->pace);
        fputs("</span>", f);
    }
    if (*r->mistakes) {
        fputs(" <span class=\"warn\">wrong on purpose: ", f);
        html_text(f, r->mistakes);
        fputs("</span>", f);
    }
    fputs("</td>", f);
}

static bool has(const struct study *s, enum metric m)
{
    for (int i = 0; i < s->nruns; i++)
        if (!isnan(s->runs[i].value[m]))
            return true;
    return false;
}

// A column of the results. It is left out if no run has measured it.
struct column {
    const char *head; // HTML
    enum metric metric;
    double scale;
};

static const struct column columns[] = {
    {"tokens/s", METRIC_TOKENS_PER_S, 1},
    {"speed-up", METRIC_SPEEDUP, 1},
    {"step<br>ms", METRIC_STEP_S, 1e3},
    {"utilisation,<br>all workers", METRIC_UTIL_TOTAL, 1},
    {"CPU share,<br>mean", METRIC_CPU_MEAN, 1},
    {"exposed<br>ms a step", METRIC_EXPOSED_S, 1e3},
    {"seconds<br>to target", METRIC_SECONDS_TO, 1},
    {"1000 tokens<br>to target", METRIC_TOKENS_TO, 1e-3},
    {"training<br>loss", METRIC_TRAIN_LOSS, 1},
    {"validation<br>loss, best", METRIC_BEST_VAL_LOSS, 1},
    {"worker,<br>MiB", METRIC_MEMORY, 1 / 1048576.0},
    {"server,<br>MiB", METRIC_SERVER_MEMORY, 1 / 1048576.0},
    {"GPU,<br>NVML", METRIC_GPU_UTIL, 1},
    {"GPU<br>MiB", METRIC_GPU_MEMORY, 1 / 1048576.0},
    {"GPU<br>W", METRIC_GPU_POWER, 1},
};

enum { COLUMNS = sizeof columns / sizeof *columns };

static void results_rows(FILE *f, const struct study *s)
{
    for (int c = 0; c < s->exp->ncells; c++) {
        const struct result *r = study_first(s, c);
        if (!r)
            continue;
        begin_row(f, r);
        fprintf(f, "<td>%d</td><td>%d</td><td>%d</td>", r->world, r->servers,
                r->global_batch);
        for (int i = 0; i < COLUMNS; i++)
            if (has(s, columns[i].metric))
                put_median(f, s, c, columns[i].metric, columns[i].scale);
        fputs("</tr>\n", f);
    }
}

static void results_table(FILE *f, const struct study *s)
{
    fputs("<div class=\"wide\"><table><thead><tr><th>cell</th><th>workers</th>"
          "<th>servers</th><th>global<br>batch</th>",
          f);
    for (int i = 0; i < COLUMNS; i++)
        if (has(s, columns[i].metric))
            fprintf(f, "<th>%s</th>", columns[i].head);
    fputs("</tr></thead><tbody>\n", f);
    results_rows(f, s);
    fprintf(f,
            "</tbody></table></div>\n<p class=\"soft\">%sTokens/s: the tokens "
            "of a step divided by the time of the median step, without "
            "evaluation and checkpoints. Utilisation: the share of a worker's "
            "time in forward, backward and update, added up over the workers "
            "(without evaluation and checkpoints). Exposed: time in which a "
            "worker communicates and does not compute. Losses: means over the "
            "workers, each on its own batch. Memory: the highest peak of any "
            "worker and of any server.",
            study_repeats(s) ? "Values are medians, with the least and most "
                               "of the repeats. "
                             : "");
    for (int i = 0; i < s->nruns; i++) {
        if (!s->runs[i].oversubscribed)
            continue;
        fputs(" <span class=\"warn\">&#8225; more threads than cores: workers "
              "share cores, so their times are longer than on cores of their "
              "own.</span>",
              f);
        break;
    }
    if (has(s, METRIC_SPEEDUP)) {
        fputs(" Speed-up: tokens/s divided by those of ", f);
        html_text(f, s->exp->baseline);
        if (study_repeats(s))
            fputs(". Its least and most come from pairs of runs of one "
                  "repeat, which ran one after the other",
                  f);
        fputs(".", f);
    }
    if (!isnan(s->target))
        fprintf(f,
                " Target: a mean training loss of %.2f over %d steps. The "
                "seconds to it are the time of the steps, without "
                "evaluation and checkpoints.",
                s->target, CURVE_MEAN);
    fputs("</p>\n", f);
}

static bool has_law(const struct study *s)
{
    for (int i = 0; i < s->nruns; i++)
        if (s->runs[i].value[METRIC_BYTES_LAW] > 0)
            return true;
    return false;
}

static void law_table(FILE *f, const struct study *s)
{
    html_element(f, "h2", "Communication, measured and by the law");
    fputs("<div class=\"wide\"><table><thead><tr><th>cell</th><th>bytes sent "
          "by a worker<br>in a step</th><th>bytes<br>by the law</th><th>"
          "measured<br>/ law</th><th>transport,<br>links</th><th>held up,<br>"
          "ms a step</th><th>exchange by<br>the law, ms</th></tr></thead>"
          "<tbody>\n",
          f);
    for (int c = 0; c < s->exp->ncells; c++) {
        const struct result *r = study_first(s, c);
        int n;
        if (!r || r->value[METRIC_BYTES_LAW] <= 0)
            continue;
        double bytes = study_range(s, c, METRIC_BYTES_TX, &n).median;
        begin_row(f, r);
        put_plain(f, bytes, 8);
        put_plain(f, r->value[METRIC_BYTES_LAW], 8);
        put_plain(f, bytes / r->value[METRIC_BYTES_LAW], 4);
        fputs("<td>", f);
        html_text(f, r->transport);
        fputs(*r->net ? ", " : "", f);
        html_text(f, r->net);
        fputs("</td>", f);
        double held = study_range(s, c, METRIC_EXPOSED_S, &n).median +
                      study_range(s, c, METRIC_WAIT_S, &n).median;
        put_plain(f, held * 1e3, 4);
        put_plain(f, r->value[METRIC_LINK_LAW] * 1e3, 4);
        fputs("</tr>\n", f);
    }
    fputs(
        "</tbody></table></div>\n<p class=\"soft\">S is the size of the "
        "gradients in bytes on the wire. A worker sends S to its servers, and "
        "2(n&minus;1)/n S in an all-reduce of n workers. With a server beside "
        "each worker it is also 2(n&minus;1)/n S, because the server's replies "
        "to other workers use the same link. Shared memory (shm) is always "
        "read in fp32. <b>Held up</b> is the part of the median step in which "
        "a worker does not compute: exposed communication and waiting. "
        "<b>Exchange by the law</b> is the time of the exchange alone, on "
        "links of net=RATE with 100 us a message. With overlap=0 it can be "
        "compared with held up; with overlap=1 a part of the exchange is "
        "hidden behind backward. Without net= the links are not known, so "
        "there is no such time.</p>\n",
        f);
}

static void figures(FILE *f, const struct study *s)
{
    char names[EXP_TEXT], path[CONFIG_PATH], *save = NULL;
    strcpy(names, s->exp->figures);
    for (char *name = strtok_r(names, " ,", &save); name;
         name = strtok_r(NULL, " ,", &save)) {
        if (text_into(path, sizeof path, "%s/figures/%s.svg", s->out, name) ||
            access(path, R_OK))
            continue;
        fputs("<figure>\n", f);
        if (html_svg(f, path))
            log_line("%s", fail_message());
        fputs("</figure>\n", f);
    }
}

static void put_object(FILE *f, const cJSON *object)
{
    const cJSON *e;
    cJSON_ArrayForEach(e, object)
    {
        if (cJSON_IsObject(e))
            continue;
        char *value = cJSON_PrintUnformatted(e);
        html_text(f, e->string);
        fputs(" = ", f);
        html_text(f, value ? value : "");
        fputs("\n", f);
        cJSON_free(value);
    }
}

// Writes the machine and the settings of the first run, from its run.json.
static void machine(FILE *f, const struct study *s)
{
    char folder[CONFIG_PATH], path[CONFIG_PATH];
    if (!s->nruns ||
        study_folder(s, s->cell_of[0], s->runs[0].repeat, folder) ||
        text_into(path, sizeof path, "%s/run.json", folder))
        return;
    char *text = file_read(path, 1 << 20);
    if (!text)
        return;
    cJSON *run = cJSON_Parse(text);
    mem_free(text);
    const char *objects[] = {"machine", "environment", "versions",
                             "data",    "model",       "workers"};
    html_element(f, "h3", "run");
    fputs("<pre>", f);
    put_object(f, run);
    fputs("</pre>\n", f);
    for (size_t i = 0; i < sizeof objects / sizeof *objects; i++) {
        html_element(f, "h3", objects[i]);
        fputs("<pre>", f);
        put_object(f, cJSON_GetObjectItemCaseSensitive(run, objects[i]));
        fputs("</pre>\n", f);
    }
    fputs("<details open><summary>settings of the first run (", f);
    html_text(f, s->runs[0].cell);
    fputs(")</summary><pre>", f);
    put_object(f, result_settings(run));
    fputs("</pre></details>\n", f);
    cJSON_Delete(run);
}

static void rerun(FILE *f, const struct study *s)
{
    fputs("<pre>", f);
    if (*s->ini) {
        fputs("lockstep run ", f);
        html_text(f, s->exp->name);
        fputs(".ini", f);
        html_text(f, s->words);
    } else {
        fputs("see &quot;command&quot; in run.json", f);
    }
    fputs("</pre>\n<p>The folder of this page also has the INI file, the "
          "words of the command line, and all runs with their steps, samples, "
          "traces and logs. "
          "<code>lockstep report</code> writes the page again.</p>\n",
          f);
}

// Writes each line as a paragraph. Lines that begin with "Warning" are marked.
static void put_lines(FILE *f, char *text)
{
    char *save = NULL;
    for (char *line = strtok_r(text, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save))
        html_element(f, strncmp(line, "Warning", 7) ? "p" : "p class=\"warn\"",
                     line);
}

static void body(FILE *f, const struct study *s)
{
    char text[1 << 14];
    const struct experiment *e = s->exp;
    html_begin(f, *e->title ? e->title : e->name);
    html_element(f, "h1", *e->title ? e->title : e->name);
    if (*e->question)
        html_element(f, "p class=\"question\"", e->question);
    study_answer(s, text, sizeof text);
    put_lines(f, text);
    html_element(f, "h2", "Results");
    results_table(f, s);
    figures(f, s);
    if (*e->expect) {
        html_element(f, "h2", "What was expected");
        html_element(f, "p", e->expect);
    }
    if (has_law(s))
        law_table(f, s);
    if (s->nruns > 1) {
        html_element(f, "h2", "What may be compared");
        study_fair(s, text, sizeof text);
        put_lines(f, text);
        html_element(f, "h2", "Was it the same training?");
        study_compare(s, text, sizeof text);
        html_element(f, "pre", text);
    }
    html_element(f, "h2", "How to repeat this");
    rerun(f, s);
    html_element(f, "h2", "Machine and settings");
    machine(f, s);
    html_end(f);
}

int study_report(const struct study *s)
{
    char path[CONFIG_PATH];
    if (text_into(path, sizeof path, "%s/report.html", s->out))
        return -1;
    FILE *f = fopen(path, "we");
    if (!f)
        return fail("%s: %s", path, strerror(errno));
    body(f, s);
    bool bad = ferror(f);
    if (fclose(f) || bad)
        return fail("%s: %s", path, strerror(errno));
    return 0;
}
