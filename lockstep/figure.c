// figure.c - gnuplot draws plots/NAME.gp twice: SVG for the report, PNG for
// everything else.

#include "lockstep/study.h"

#include "base/base.h"
#include "base/file.h"
#include "lockstep/figure.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

const char *figure_plots(void)
{
    const char *dir = getenv("LOCKSTEP_PLOTS");
    return dir ? dir : LOCKSTEP_PLOTS;
}

// What gnuplot says goes to `log`.
static int run_gnuplot(const char *script, const char *data, const char *out,
                       const char *log)
{
    pid_t pid = fork();
    if (pid == 0) {
        int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
        if (fd < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0)
            _exit(127);
        if (chdir(figure_plots()))
            _exit(126);
        execlp("gnuplot", "gnuplot", "-c", script, data, out, (char *)NULL);
        _exit(127);
    }
    int status;
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        return fail("gnuplot: %s", strerror(errno));
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        return fail("gnuplot: not found; try: ./install");
    return status ? fail("%s: gnuplot failed; see %s", script, log) : 0;
}

// The scripts hand paths to a shell: they are given a link whose name holds
// nothing that a shell reads, in a folder of ours.
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

int figure_draw(const char *name, const char *data, const char *out)
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
             run_gnuplot(script, link, file, log);
        if (rc)
            unlink(file);
    }
    if (*folder)
        file_remove_folder(folder);
    free(to);
    return rc ? -1 : 0;
}

int figures_check(const char *figures)
{
    char names[EXP_TEXT], path[CONFIG_PATH], *save = NULL;
    if (text_into(names, sizeof names, "%s", figures))
        return -1;
    for (char *name = strtok_r(names, " ,", &save); name;
         name = strtok_r(NULL, " ,", &save)) {
        // a script of ours, and no other that a path leads to
        if (name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_")])
            return fail("figures=%s: not the name of a figure; try: ls %s",
                        name, figure_plots());
        if (text_into(path, sizeof path, "%s/%s.gp", figure_plots(), name))
            return -1;
        if (access(path, R_OK))
            return fail("figures=%s: %s: %s; try: ls %s", name, path,
                        strerror(errno), figure_plots());
    }
    return 0;
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
        if (figure_draw(name, s->out, out))
            log_line("figure %s: %s", name, fail_message());
        else
            drawn++;
    }
    return drawn;
}
