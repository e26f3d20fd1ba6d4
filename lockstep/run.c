// run.c - `lockstep run` runs every cell of an experiment, in a shuffled order.
//
// Each round runs every cell once, in an order of its own. So a machine that is
// slow for an hour slows all cells equally. Finished runs are kept: after an
// interruption the same command continues.

#include "lockstep/commands.h"

#include "base/base.h"
#include "base/file.h"
#include "base/rng.h"
#include "base/share.h"
#include "lockstep/argv.h"
#include "lockstep/figure.h"
#include "lockstep/study.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

// NOT_HERE: the exit status of a peer (a program that trains a cell with peer=)
// that cannot train the cell, for example because PyTorch is not installed.
// SKIPPED: what run_one() then returns.
enum { NOT_HERE = 77, SKIPPED = 2 };

static volatile sig_atomic_t stopped_by;

static void stop(int sig)
{
    stopped_by = sig;
}

static void explain(FILE *f)
{
    fprintf(
        f, "lockstep run FILE.ini [out=DIR] [repeat=N] [key=value] ...\n\n"
           "Runs every cell of the experiment repeat= times, then writes "
           "tables, figures and a\nreport to DIR (default: runs/NAME). A word "
           "of the command line replaces a setting\nof [base] or a list of "
           "[matrix]. After an interruption the same command continues.\n"
           "  lockstep run experiments/paper.ini\n"
           "  lockstep run experiments/paper.ini workers=4 batch=8 repeat=1 "
           "out=runs/p4\n\n"
           "An INI file:\n"
           "  [experiment]\n"
           "  title, question, expect      text for the report\n"
           "  figures = throughput ..      names from the list below, or none\n"
           "  repeat = 3                   runs of each cell\n"
           "  baseline = CELL              the cell to compare others with\n"
           "  target_loss = auto           report the seconds to this loss; "
           "auto: the least\n"
           "                               loss that all cells reach\n"
           "  [base]                       settings of all cells, key = value\n"
           "  [matrix]                     every combination of these values\n"
           "  batch = 8, 16\n"
           "  size = workers=1 batch=16, workers=2 batch=8    several keys at "
           "once\n"
           "  size = batch=2 (steps=160), batch=4 (steps=80)  names of cells "
           "omit words in ()\n"
           "  [cell NAME]                  combined with each of these cells\n"
           "  sync = ring\n"
           "  peer = ddp                   PyTorch's DDP trains this cell, if "
           "python3 has it;\n"
           "                               peer_python= names another python3\n"
           "\n"
           "Figures:\n");
    figures_list(f);
}

static int remove_one(const char *path, const struct stat *st, int flag,
                      struct FTW *ftw)
{
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

// Removes the files of an interrupted run.
static int clear_folder(const char *folder)
{
    if (access(folder, F_OK) && errno == ENOENT)
        return 0;
    if (nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS))
        return fail("%s: %s", folder, strerror(errno));
    return 0;
}

// Reads the last line of a log, for the error message of a run.
static void last_line(const char *path, char *out, size_t size)
{
    char line[512];
    FILE *f = fopen(path, "re");
    snprintf(out, size, "no output");
    while (f && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        if (*line)
            snprintf(out, size, "%s", line);
    }
    if (f)
        fclose(f);
}

// Adds the command of the script that trains with PyTorch's DDP. It gets the
// same words as `lockstep train`, and asks that program for their meaning.
static int add_peer(struct argv *a, const struct experiment *e)
{
    char script[CONFIG_PATH];
    const char *python = *e->peer_python ? e->peer_python : "python3";
    return share_path(script, sizeof script,
                      "tests/oracle/gpt2_torch_ddp.py") ||
                   argv_add(a, "%s", python) || argv_add(a, "%s", script) ||
                   argv_add_program(a, "lockstep")
               ? -1
               : 0;
}

static void become(char *const *argv, const char *log)
{
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    setpgid(0, 0); // Ctrl-C must reach it only once, through run_one()
    int fd = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (fd < 0 || null < 0 || dup2(null, 0) < 0 || dup2(fd, 1) < 0 ||
        dup2(fd, 2) < 0)
        _exit(127);
    execvp(argv[0], argv);
    _exit(127);
}

// Runs one repeat of a cell. Returns 0, or 1 if a signal asks to stop, or
// SKIPPED or -1 after fail().
static int run_one(const struct study *s, int cell, int k)
{
    char folder[CONFIG_PATH], log[CONFIG_PATH], why[512];
    const struct word_list *words = &s->exp->cells[cell].words;
    struct argv *a = mem_alloc(1, sizeof *a);
    int rc = a ? 0 : -1, status = 0;
    if (!rc)
        rc = study_folder(s, cell, k, folder) || clear_folder(folder) ||
             file_make_folder(folder) < 0 ||
             text_into(log, sizeof log, "%s.txt", folder) ||
             (s->exp->cells[cell].peer
                  ? add_peer(a, s->exp)
                  : argv_add_program(a, "lockstep") || argv_add(a, "train"));
    for (int i = 0; !rc && i < words->n; i++)
        rc = argv_add(a, "%s", words->at[i]);
    if (!rc)
        rc = argv_add(a, "out=%s", folder);
    pid_t pid = rc ? -1 : fork();
    if (pid == 0)
        become(a->at, log);
    mem_free(a);
    if (rc || pid < 0)
        return rc ? -1 : fail("fork: %s", strerror(errno));
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        kill(pid, stopped_by);
    if (stopped_by)
        return 1;
    if (status == 0 && study_done(s, cell, k))
        return 0;
    last_line(log, why, sizeof why);
    bool skipped = s->exp->cells[cell].peer && WIFEXITED(status) &&
                   WEXITSTATUS(status) == NOT_HERE;
    fail("%s, repeat %d: %s", s->exp->cells[cell].name, k, why);
    return skipped ? SKIPPED : -1;
}

static void shuffle(int *order, int n, int round)
{
    for (int i = 0; i < n; i++)
        order[i] = i;
    for (int i = n - 1; i > 0; i--) {
        int j = (int)rng_below(rng_key(1, (uint64_t)round), (uint64_t)i,
                               (uint64_t)i + 1);
        int t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
}

static int count_done(const struct study *s)
{
    int done = 0;
    for (int c = 0; c < s->exp->ncells; c++)
        for (int k = 1; k <= s->exp->repeat; k++)
            done += study_done(s, c, k);
    return done;
}

// Runs all runs that are not done yet. Returns how many failed, or -1 if a
// signal asks to stop.
static int run_all(const struct study *s)
{
    int order[EXP_CELLS], n = s->exp->ncells, failed = 0;
    int all = n * s->exp->repeat, done = count_done(s), ran = 0;
    uint64_t began = now_ns();
    if (done)
        fprintf(stderr, "%s: %d of %d runs are done already\n", s->exp->name,
                done, all);
    for (int k = 1; k <= s->exp->repeat; k++) {
        shuffle(order, n, k);
        for (int i = 0; i < n; i++) {
            if (study_done(s, order[i], k))
                continue;
            char left[32] = "";
            double each = ran ? (double)(now_ns() - began) * 1e-9 / ran : 0;
            if (ran)
                snprintf(left, sizeof left, ", about %.0f s left",
                         each * (all - done - failed));
            fprintf(stderr, "[%d/%d] %s, repeat %d%s\n", done + failed + 1, all,
                    s->exp->cells[order[i]].name, k, left);
            int rc = run_one(s, order[i], k);
            if (rc == 1)
                return -1;
            if (rc)
                log_line("%s: %s", rc < 0 ? "failed" : "skipped",
                         fail_message());
            failed += rc < 0;
            done += rc >= 0;
            ran++;
        }
    }
    return failed;
}

// Only one `lockstep run` may use a folder: two would disturb each other's
// measurements.
static int take_lock(const char *out)
{
    char path[CONFIG_PATH];
    if (text_into(path, sizeof path, "%s/.lock", out))
        return -1;
    int fd = file_lock(path);
    return fd == FILE_LOCKED ? fail("%s: another lockstep run is using this "
                                    "folder; try: another out=",
                                    out)
                             : fd;
}

static void catch_signals(void)
{
    struct sigaction a = {.sa_handler = stop}; // no SA_RESTART: wake waitpid
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
    sigaction(SIGHUP, &a, NULL);
}

// Finds the experiment by its path, or else among the installed ones.
static int find_ini(char ini[CONFIG_PATH], const char *name)
{
    if (access(name, F_OK) && *name != '/' &&
        !share_path(ini, CONFIG_PATH, name) && !access(ini, F_OK))
        return 0;
    return text_into(ini, CONFIG_PATH, "%s", name);
}

static int run(int nwords, char **words)
{
    char out[CONFIG_PATH] = "", ini[CONFIG_PATH];
    char *kept[EXP_WORDS];
    int n = 0;
    struct study *s = NULL;
    for (int i = 1; i < nwords; i++) {
        if (!strncmp(words[i], "out=", 4))
            snprintf(out, sizeof out, "%s", words[i] + 4);
        else if (n == EXP_WORDS)
            return fail("run: more than %d words", EXP_WORDS);
        else
            kept[n++] = words[i];
    }
    if (!*out) {
        const char *slash = strrchr(words[0], '/');
        const char *name = slash ? slash + 1 : words[0];
        snprintf(out, sizeof out, "runs/%.*s", (int)strcspn(name, "."), name);
    }
    if (find_ini(ini, words[0]) || study_begin(&s, ini, out, n, kept))
        return -1;
    int lock = take_lock(out), failed = 0, rc = lock < 0 ? -1 : 0;
    catch_signals();
    if (!rc)
        failed = run_all(s);
    if (!rc && failed < 0)
        fprintf(stderr, "stopped; the same command continues from here\n");
    else if (!rc)
        rc = study_finish(s);
    if (!rc && failed > 0)
        rc = fail("%d runs failed; try: read their logs in %s/cells/*/*.txt",
                  failed, out);
    study_close(&s);
    if (lock >= 0)
        close(lock);
    return rc ? -1 : failed < 0 ? 128 + stopped_by : 0;
}

const struct command command_run = {
    .name = "run",
    .words = "FILE.ini [key=value] ..",
    .help = "run an experiment, with tables, figures and a report",
    .explain = explain,
    .least = 1,
    .run = run,
};
