// watch.c - `lockstep watch` shows all workers of a run and updates the output
// again and again, like `watch nvidia-smi`. It prints plain text, so it works
// over ssh and in a pipe.

#include "lockstep/commands.h"

#include "base/base.h"
#include "config/keys.h"
#include "lockstep/live.h"

#include <math.h>
#include <stddef.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BAR = 20 };

// A run that writes nothing for so long, and has not ended, was stopped.
static const double quiet_s = 90;

// A worker is marked if it takes more than this times the median worker's time.
static const double much_slower = 1.25;

struct words {
    double every; // s
    int times;    // 0: until the run is over
};

#define AT(member) offsetof(struct words, member), false
static const struct key rows[] = {
    {"watch", "every", "1", KEY_NUMBER, AT(every), 0.05, 3600, .unit = "s",
     .help = "between two updates"},
    {"watch", "times", "0", KEY_INT, AT(times), 1, 1e9, "until the run is over",
     .unit = "updates", .help = "after so many, watch ends"},
};
#undef AT

static const struct key_table table = {
    .rows = rows,
    .n = sizeof rows / sizeof *rows,
    .all = "lockstep watch --help",
};

static void explain(FILE *f)
{
    fprintf(f,
            "lockstep watch DIR [key=value] ..\n\nShows what every worker "
            "does now. DIR is the folder of a run, or of an experiment:\n"
            "then it shows the latest run. A - means that a value is not "
            "measured, or not yet.\nIt ends with the run, or when nothing "
            "came for %.0f s.\n",
            quiet_s);
    key_help(f, &table);
}

static void put(double v, int width, int decimals, const char *unit)
{
    if (isnan(v))
        printf("  %*s%*s", width, "-", (int)strlen(unit), "");
    else
        printf("  %*.*f%s", width, decimals, v, unit);
}

static void put_bar(double share)
{
    int n = isnan(share) ? 0 : (int)lround(share * BAR);
    putchar('[');
    for (int i = 0; i < BAR; i++)
        putchar(i < n ? '#' : '.');
    putchar(']');
    put(100 * share, 3, 0, "%");
}

static void put_worker(const struct live *l, int i)
{
    const struct live_worker *w = &l->at[i];
    printf("%s %-4d ", w->is_server ? "server" : "worker", w->rank);
    put_bar(w->busy);
    if (w->is_server) {
        printf("  %7s  %9s  %7s", "", "", "");
    } else {
        printf("  %7d", w->step);
        put(w->tokens_per_s, 9, 0, "");
        put(w->loss, 7, 4, "");
    }
    put(w->bytes / 1048576, 7, 0, " MiB");
    if (!isnan(w->gpu_bytes)) {
        put(w->gpu_bytes / 1048576, 7, 0, " MiB on the GPU");
        put(w->gpu_power_w, 4, 0, " W");
    }
    if (!w->is_server && live_slowness(l, i) > much_slower)
        printf("  slow: computes %.1f times as long as the median worker",
               live_slowness(l, i));
    putchar('\n');
}

// Returns the seconds since `at`.
static double age_of(time_t at)
{
    return fmax(0, difftime(time(NULL), at));
}

static void show(const struct live *l)
{
    char dir[sizeof l->dir];
    double rate = 0, val = 0;
    int least = l->at[0].step;
    for (int i = 0; i < l->world; i++) {
        rate += l->at[i].tokens_per_s;
        val += l->at[i].val_loss;
        least = l->at[i].step < least ? l->at[i].step : least;
    }
    snprintf(dir, sizeof dir, "%s", l->dir);
    text_visible(dir);
    printf("%s: %s, %d worker%s, step %d of %d%s", dir, l->backend, l->world,
           l->world > 1 ? "s" : "", least, l->steps, l->over ? ", over" : "");
    if (!l->ended && l->row_at)
        printf(", last row %.0f s ago", age_of(l->row_at));
    putchar('\n');
    printf("all: ");
    put(rate, 0, 0, " tokens/s");
    put(val / l->world, 0, 4, " validation loss");
    printf("\n\n%-12s%-*s  %9s  %9s  %7s  %11s\n", "", BAR + 6, "computing",
           "step", "tokens/s", "loss", "memory");
    for (int i = 0; i < l->n; i++)
        put_worker(l, i);
    printf("\n-: not measured, or not yet\n");
    fflush(stdout);
}

static int watch(int nwords, char **words)
{
    struct words w;
    key_defaults(&table, &w);
    if (key_words(&table, &w, nwords - 1, words + 1))
        return -1;
    bool terminal = isatty(STDOUT_FILENO);
    struct timespec pause = {(time_t)w.every, (long)(fmod(w.every, 1) * 1e9)};
    for (int i = 0, over = 0; !over && (!w.times || i < w.times); i++) {
        struct live l;
        if (i)
            nanosleep(&pause, NULL);
        int rc = live_read(&l, words[0]);
        if (!rc) {
            fputs(terminal ? "\033[H\033[J" : i ? "\n" : "", stdout);
            show(&l);
            over = l.over;
            if (!l.ended && age_of(l.heard_at) >= quiet_s)
                rc = fail("%s: nothing came for %.0f s, and there is no "
                          "summary.json: the run was stopped, or it hangs",
                          l.dir, age_of(l.heard_at));
        }
        live_free(&l);
        if (rc)
            return -1;
    }
    return 0;
}

const struct command command_watch = {
    .name = "watch",
    .words = "DIR [key=value] ..",
    .help = "show all workers of a run while it is going on",
    .explain = explain,
    .least = 1,
    .run = watch,
};
