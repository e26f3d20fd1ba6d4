// study.c - makes or opens the folder of an experiment, finds its runs and
// reads their results.

#include "lockstep/study.h"

#include "base/base.h"
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int copy_file(const char *from, const char *to)
{
    char *text = file_read(from, 1 << 20);
    int rc = text ? file_replace_text(to, text) : -1;
    mem_free(text);
    return rc;
}

// Writes command.txt: the saved INI's name and the words, one a line.
static int save_command(const struct study *s, const char *ini, int nwords,
                        char *const *words)
{
    char path[CONFIG_PATH], all[4 * EXP_TEXT];
    size_t at = (size_t)snprintf(all, sizeof all, "%s.ini\n", s->exp->name);
    for (int i = 0; i < nwords && at < sizeof all; i++)
        at += (size_t)snprintf(all + at, sizeof all - at, "%s\n", words[i]);
    if (at >= sizeof all)
        return fail("more than %zu bytes of words", sizeof all);
    if (text_into(path, sizeof path, "%s/%s.ini", s->out, s->exp->name) ||
        (strcmp(path, ini) && copy_file(ini, path)) ||
        text_into(path, sizeof path, "%s/command.txt", s->out))
        return -1;
    return file_replace_text(path, all);
}

static struct study *new_study(const char *out)
{
    struct study *s = mem_alloc(1, sizeof *s);
    if (!s || text_into(s->out, sizeof s->out, "%s", out)) {
        mem_free(s);
        return NULL;
    }
    size_t n = strlen(s->out);
    while (n > 1 && s->out[n - 1] == '/')
        s->out[--n] = '\0';
    return s;
}

static int open_experiment(struct study *s, const char *ini, int nwords,
                           char *const *words)
{
    for (int i = 0; i < nwords; i++) {
        size_t at = strlen(s->words);
        if (text_into(s->words + at, sizeof s->words - at, " %s", words[i]))
            return -1;
    }
    return experiment_open(&s->exp, ini, nwords, words);
}

int study_begin(struct study **out, const char *ini, const char *dir,
                int nwords, char *const *words)
{
    struct study *s = new_study(dir);
    if (!s)
        return -1;
    if (text_into(s->ini, sizeof s->ini, "%s", ini) ||
        open_experiment(s, ini, nwords, words) ||
        file_make_folder(s->out) < 0 || save_command(s, ini, nwords, words)) {
        study_close(&s);
        return -1;
    }
    *out = s;
    return 0;
}

// Makes the study of a single run: one cell without settings, whose folder is
// DIR itself.
static int open_single(struct study *s)
{
    struct experiment *e = s->exp = mem_alloc(1, sizeof *e);
    const char *slash = strrchr(s->out, '/');
    if (!e)
        return -1;
    e->repeat = e->ncells = 1;
    e->cells[0].baseline = -1;
    strcpy(e->figures, "loss util_timeline memory_timeline breakdown");
    strcpy(e->title, "One run");
    return text_into(e->name, sizeof e->name, "%s",
                     slash ? slash + 1 : s->out) ||
                   text_into(e->cells[0].name, EXP_NAME, "%s", e->name)
               ? -1
               : 0;
}

static int open_saved(struct study *s, FILE *f)
{
    enum { MOST = 64 };
    char lines[MOST][EXP_WORD], *words[MOST];
    int n = 0;
    for (; n < MOST && fgets(lines[n], EXP_WORD, f); n++) {
        lines[n][strcspn(lines[n], "\n")] = '\0';
        words[n] = lines[n];
    }
    if (!n || text_into(s->ini, sizeof s->ini, "%s/%s", s->out, lines[0]))
        return fail("%s/command.txt: empty", s->out);
    return open_experiment(s, s->ini, n - 1, words + 1);
}

int study_open(struct study **out, const char *dir)
{
    char path[CONFIG_PATH];
    struct study *s = new_study(dir);
    if (!s)
        return -1;
    int rc = text_into(path, sizeof path, "%s/command.txt", s->out);
    FILE *f = rc ? NULL : file_open(path);
    if (f) {
        rc = open_saved(s, f);
        fclose(f);
    } else if (!rc && !text_into(path, sizeof path, "%s/run.json", s->out) &&
               access(path, F_OK) == 0) {
        rc = open_single(s);
    } else {
        rc = fail("%s: neither an experiment nor a run; it has no command.txt "
                  "and no run.json",
                  s->out);
    }
    if (!rc)
        rc = study_results(s);
    if (!rc && !*s->ini && s->nruns && *s->runs[0].pace) // it has no loss
        strcpy(s->exp->figures, "util_timeline memory_timeline breakdown");
    if (rc)
        study_close(&s);
    else
        *out = s;
    return rc;
}

static void forget_results(struct study *s)
{
    for (int i = 0; i < s->nruns; i++)
        result_free(&s->runs[i]);
    mem_free(s->runs);
    mem_free(s->cell_of);
    s->nruns = 0;
}

void study_close(struct study **s)
{
    if (!*s)
        return;
    experiment_close(&(*s)->exp);
    forget_results(*s);
    mem_free(*s);
    *s = NULL;
}

int study_folder(const struct study *s, int cell, int k, char path[CONFIG_PATH])
{
    if (!*s->ini)
        return text_into(path, CONFIG_PATH, "%s", s->out);
    size_t at = strlen(s->out) + strlen("/cells/");
    if (text_into(path, CONFIG_PATH, "%s/cells/%s/r%d", s->out,
                  s->exp->cells[cell].name, k))
        return -1;
    for (char *p = path + at; *p; p++)
        if (*p == ' ')
            *p = '_';
    return 0;
}

bool study_done(const struct study *s, int cell, int k)
{
    char folder[CONFIG_PATH], path[CONFIG_PATH];
    return !study_folder(s, cell, k, folder) &&
           !text_into(path, sizeof path, "%s/summary.json", folder) &&
           access(path, F_OK) == 0;
}

// Checks that a folder has only regular files and folders. Scripts for figures
// open files by name, and would hang on a pipe or a device.
static int check_files(const char *folder)
{
    DIR *d = opendir(folder);
    int rc = 0;
    if (!d)
        return fail("%s: %s", folder, strerror(errno));
    for (struct dirent *e; !rc && (e = readdir(d));) {
        struct stat st;
        if (!fstatat(dirfd(d), e->d_name, &st, 0) && !S_ISREG(st.st_mode) &&
            !S_ISDIR(st.st_mode))
            rc = fail("%s/%s: not a regular file; try: remove it", folder,
                      e->d_name);
    }
    closedir(d);
    return rc;
}

// If a run has samples of a GPU, adds their figure.
static void add_gpu_figure(struct study *s)
{
    char *figures = s->exp->figures;
    size_t at = strlen(figures);
    bool gpu = false;
    for (int i = 0; i < s->nruns; i++)
        gpu |= !isnan(s->runs[i].value[METRIC_GPU_UTIL]);
    if (gpu && strcmp(figures, "none") && !strstr(figures, "gpu_timeline") &&
        at + sizeof " gpu_timeline" <= EXP_TEXT)
        strcpy(figures + at, " gpu_timeline");
}

int study_results(struct study *s)
{
    int most = s->exp->ncells * s->exp->repeat;
    char folder[CONFIG_PATH];
    forget_results(s);
    if (check_files(s->out))
        return -1;
    s->runs = mem_alloc((size_t)most, sizeof *s->runs);
    s->cell_of = mem_alloc((size_t)most, sizeof *s->cell_of);
    if (!s->runs || !s->cell_of)
        return -1;
    for (int c = 0; c < s->exp->ncells; c++) {
        for (int k = 1; k <= s->exp->repeat; k++) {
            struct result *r = &s->runs[s->nruns];
            if (!study_done(s, c, k))
                continue;
            s->cell_of[s->nruns++] = c;
            if (study_folder(s, c, k, folder) || check_files(folder) ||
                result_read(r, folder))
                return -1;
            snprintf(r->cell, sizeof r->cell, "%s", s->exp->cells[c].name);
            r->repeat = k;
        }
    }
    study_measure(s);
    add_gpu_figure(s);
    return 0;
}

const struct result *study_first(const struct study *s, int cell)
{
    for (int i = 0; i < s->nruns; i++)
        if (s->cell_of[i] == cell)
            return &s->runs[i];
    return NULL;
}

bool study_repeats(const struct study *s)
{
    for (int i = 1; i < s->nruns; i++) // runs are ordered by cell
        if (s->cell_of[i] == s->cell_of[i - 1])
            return true;
    return false;
}

FILE *study_file(const struct study *s, const char *name)
{
    char path[CONFIG_PATH];
    if (text_into(path, sizeof path, "%s/%s", s->out, name))
        return NULL;
    FILE *f = fopen(path, "we");
    if (!f)
        fail("%s: %s", path, strerror(errno));
    return f;
}

int study_file_end(const struct study *s, FILE *f, const char *name)
{
    bool bad = ferror(f);
    if (fclose(f) || bad)
        return fail("%s/%s: %s", s->out, name, strerror(errno));
    return 0;
}
