// figure.c - runs gnuplot with plots/NAME.gp twice: it draws an SVG for the
// report, and a PNG for all other uses.

#include "lockstep/study.h"

#include "base/base.h"
#include "base/file.h"
#include "base/share.h"
#include "lockstep/figure.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

// Writes the path of the script `name`, or of the scripts' folder if it is "".
static int plots_path(char out[CONFIG_PATH], const char *name)
{
    const char *dir = getenv("LOCKSTEP_PLOTS");
    char file[CONFIG_PATH];
    if (dir)
        return text_into(out, CONFIG_PATH, "%s/%s", dir, name);
    return text_into(file, sizeof file, "plots/%s", name) ||
                   share_path(out, CONFIG_PATH, file)
               ? -1
               : 0;
}

// Runs gnuplot. Its messages are appended to the file `log`.
static int run_gnuplot(const char *script, const char *data, const char *out,
                       const char *size, const char *log)
{
    char set[64], plots[CONFIG_PATH];
    if (plots_path(plots, ""))
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
        if (fd < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0)
            _exit(127);
        if (chdir(plots))
            _exit(126);
        snprintf(set, sizeof set, "SIZE='%s'", size);
        execlp("gnuplot", "gnuplot", "-e", *size ? set : "", "-c", script, data,
               out, (char *)NULL);
        _exit(127);
    }
    int status;
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        return fail("gnuplot: %s", strerror(errno));
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        return fail("gnuplot: not found; try: ./install");
    return status ? fail("%s: gnuplot failed; see %s", script, log) : 0;
}

// The scripts pass paths to a shell. So they get a link to the data, in a
// temporary folder, whose name has no characters that are special to a shell.
static int link_data(const char *data, char folder[32], char link[128])
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.=-";
    char *whole = realpath(data, NULL);
    if (!whole)
        return fail("%s: %s", data, strerror(errno));
    strcpy(folder, "/tmp/lockstep-figure-XXXXXX");
    int rc = 0;
    if (!mkdtemp(folder)) {
        rc = fail("%s: %s", folder, strerror(errno));
        *folder = '\0';
    } else {
        int at = snprintf(link, 128, "%s/", folder);
        snprintf(link + at, 64, "%s", strrchr(whole, '/') + 1);
        for (char *p = link + at; *(p += strspn(p, plain));)
            *p = '_';
        if (symlink(whole, link))
            rc = fail("%s: %s", link, strerror(errno));
    }
    free(whole);
    return rc;
}

int figure_draw(const char *name, const char *data, const char *out,
                const char *size)
{
    char script[256], file[CONFIG_PATH], log[CONFIG_PATH];
    char folder[32] = "", link[128] = "", *to = NULL;
    int rc = text_into(script, sizeof script, "%s.gp", name) ||
             file_make_folder(out) < 0 || link_data(data, folder, link);
    if (!rc && !(to = realpath(out, NULL)))
        rc = fail("%s: %s", out, strerror(errno));
    const char *kinds[] = {"svg", "png"};
    for (int i = 0; !rc && i < 2; i++) {
        rc = text_into(log, sizeof log, "%s/gnuplot.log", to) ||
             text_into(file, sizeof file, "%s/%s.%s", to, name, kinds[i]) ||
             run_gnuplot(script, link, file, size, log);
        if (rc)
            unlink(file);
    }
    if (*folder)
        file_remove_folder(folder);
    free(to);
    return rc ? -1 : 0;
}

// A script that draws a figure has the line DIR = ARG1. Figures load all other
// scripts as their parts.
static bool is_figure(const char *path)
{
    char line[512];
    bool takes = false;
    FILE *gp = fopen(path, "re");
    while (gp && !takes && fgets(line, sizeof line, gp))
        takes = !strncmp(line, "DIR = ARG1", 10);
    if (gp)
        fclose(gp);
    return takes;
}

int figures_check(const char *figures)
{
    char names[EXP_TEXT], file[CONFIG_WORD], path[CONFIG_PATH], *save = NULL;
    if (text_into(names, sizeof names, "%s", figures))
        return -1;
    if (!strcmp(names, "none"))
        return 0;
    for (char *name = strtok_r(names, " ,", &save); name;
         name = strtok_r(NULL, " ,", &save)) {
        // A name, not a path: only scripts of this folder may run.
        if (name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_")])
            return fail(
                "figures=%s: no such figure; try: a name from lockstep report "
                "--help",
                name);
        if (text_into(file, sizeof file, "%s.gp", name) ||
            plots_path(path, file))
            return -1;
        if (access(path, R_OK))
            return fail("figures=%s: %s: %s; try: a name from lockstep report "
                        "--help",
                        name, path, strerror(errno));
        if (!is_figure(path))
            return fail("figures=%s: %s.gp is only a part of other figures; "
                        "try: a name from lockstep report --help",
                        name, name);
    }
    return 0;
}

int figure_check_size(const char *size)
{
    int wide, high, used = 0;
    if (sscanf(size, "%dx%d%n", &wide, &high, &used) != 2 || size[used] ||
        wide < 200 || high < 100 || wide > 20000 || high > 20000)
        return fail("size=%s: must be WIDTHxHEIGHT in pixels, 200x100 to "
                    "20000x20000; try: size=1600x900",
                    size);
    return 0;
}

// Prints a figure's name and description. The first comment of a script is
// "NAME.gp - description"; the description ends at a colon.
static void list_one(FILE *f, const char *path)
{
    char line[256];
    bool begun = false;
    FILE *gp = fopen(path, "re");
    while (gp && fgets(line, sizeof line, gp) && line[0] == '#') {
        const char *text = begun ? line + 2 : strstr(line, ".gp - ");
        if (!text)
            break;
        if (!begun)
            fprintf(f, "  %-16.*s ", (int)(text - line) - 2, line + 2);
        text += begun ? 0 : strlen(".gp - ");
        size_t n = strcspn(text, ":\n");
        fprintf(f, "%s%.*s", begun ? " " : "", (int)n, text);
        begun = true;
        if (text[n] == ':')
            break;
    }
    if (begun)
        fputs("\n", f);
    if (gp)
        fclose(gp);
}

void figures_list(FILE *f)
{
    char pattern[CONFIG_PATH];
    glob_t found;
    if (plots_path(pattern, "*.gp") || glob(pattern, 0, NULL, &found))
        return;
    for (size_t i = 0; i < found.gl_pathc; i++)
        if (is_figure(found.gl_pathv[i]))
            list_one(f, found.gl_pathv[i]);
    globfree(&found);
}

int study_figures(const struct study *s)
{
    char names[EXP_TEXT], out[CONFIG_PATH], *save = NULL;
    int drawn = 0;
    if (text_into(out, sizeof out, "%s/figures", s->out) ||
        text_into(names, sizeof names, "%s", s->exp->figures))
        return -1;
    for (char *name = strtok_r(names, " ,", &save); name;
         name = strtok_r(NULL, " ,", &save)) {
        if (strcmp(name, "none") && figure_draw(name, s->out, out, ""))
            log_line("figure %s: %s", name, fail_message());
        else
            drawn++;
    }
    return drawn;
}
