// job_of_scripts.h - a job whose children are shell scripts, for tests of the
// supervisor.

#pragma once

#include "launch/supervise.h"

#include "base/base.h"
#include "launch/progress.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "tests/test.h"

struct fixture {
    double grace_s; // until SIGKILL (0: a minute, which no test reaches)
    const struct job_again *again;
    int asked; // how often a test was asked to start a worker again
    char dir[64], log[128];
    struct progress *progress;
    struct job *job;
};

static inline void make_folder(struct fixture *f)
{
    strcpy(f->dir, "/tmp/lockstep_job_XXXXXX");
    assert_non_null(mkdtemp(f->dir));
}

static inline void remove_folder(const struct fixture *f)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", f->dir);
    assert_int_equal(system(command), 0);
}

static inline void open_job_here(struct fixture *f, bool elastic)
{
    snprintf(f->log, sizeof f->log, "%s/log.txt", f->dir);
    assert_int_equal(progress_open(&f->progress), 0);
    struct job_config config = {.children = 8,
                                .log_path = f->log,
                                .progress = f->progress,
                                .grace_s = f->grace_s > 0 ? f->grace_s : 60,
                                .elastic = elastic,
                                .again = f->again};
    assert_int_equal(job_open(&f->job, &config), 0);
}

static inline void open_job(struct fixture *f, bool elastic)
{
    make_folder(f);
    open_job_here(f, elastic);
}

static inline int script(struct fixture *f, enum job_kind kind, int rank,
                         const char *text)
{
    char copy[512], sh[] = "/bin/sh", flag[] = "-c";
    snprintf(copy, sizeof copy, "%s", text);
    char *argv[] = {sh, flag, copy, NULL};
    struct job_child child = {.kind = kind, .rank = rank, .argv = argv};
    return job_start(f->job, &child);
}

static inline void close_job(struct fixture *f)
{
    job_close(&f->job);
    assert_null(f->job);
    progress_close(&f->progress);
    remove_folder(f);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

static inline void read_log(const struct fixture *f, char *out, size_t size)
{
    FILE *file = fopen(f->log, "r");
    assert_non_null(file);
    out[fread(out, 1, size - 1, file)] = '\0';
    fclose(file);
}

static inline void assert_says(const char *part)
{
    if (!strstr(fail_message(), part)) {
        print_error("'%s' does not say '%s'\n", fail_message(), part);
        assert_true(false);
    }
}
