// mpirun.c - mpirun's words for a failure, as Open MPI 4 writes them:
//
//       Process name: [[28543,1],1]            mpirun noticed that process rank
//       Exit code:    3                        1 with PID 0 on node x exited on
//                                              signal 9 (Killed).
//
// or, where it could not start the job, a paragraph between two rules:
//
//     -----------------------------------------
//     Open RTE was unable to open the hostfile:
//         hosts.txt
//     Check to make sure the path and filename are correct.
//     -----------------------------------------

#include "lockstep/mpirun.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

static void note_failure(struct mpirun_report *m, const char *text)
{
    int job, step, rank, code;
    const char *by_signal = strstr(text, "exited on signal ");
    if (sscanf(text, " Process name: [[%d,%d],%d]", &job, &step, &rank) == 3 &&
        !m->failed)
        m->failed = rank + 1;
    else if (sscanf(text, " Exit code: %d", &code) == 1 && !m->code)
        m->code = code;
    else if (sscanf(text, "mpirun noticed that process rank %d", &rank) == 1) {
        m->failed = rank + 1;
        if (by_signal)
            m->signal = atoi(by_signal + strlen("exited on signal "));
    }
}

// Rules and empty lines end the paragraph.
static void note_words(struct mpirun_report *m, const char *text)
{
    size_t at = strlen(m->said);
    text += strspn(text, " \t");
    bool blank = text[strspn(text, "-")] == '\0';
    if (blank)
        m->said_all = at > 0;
    else if (!m->said_all)
        snprintf(m->said + at, sizeof m->said - at, "%s%s", at ? " " : "",
                 text);
}

// mpirun reads in pieces of its own length, and puts its tag (the first `n`
// bytes of the line) before each, also where one begins amid a line.
static void remove_tags(char *text, const char *tag, size_t n)
{
    for (char *p = text; (p = memmem(p, strlen(p), tag, n));)
        memmove(p, p + n, strlen(p + n) + 1);
}

bool mpirun_line(struct mpirun_report *m, char **text, int *rank, int *stream)
{
    int job, r, used = 0;
    char which[8];
    if (sscanf(*text, "[%d,%d]<%7[a-z]>:%n", &job, &r, which, &used) != 3 ||
        used == 0 || r < 0 || r >= MPIRUN_RANKS) {
        note_failure(m, *text);
        note_words(m, *text);
        return false;
    }
    remove_tags(*text + used, *text, (size_t)used);
    *text = child_without_rank(*text + used, r);
    *rank = r;
    *stream = strcmp(which, "stderr") == 0;
    m->heard[r] = true;
    if (!m->last)
        m->last = mem_alloc(MPIRUN_RANKS, sizeof *m->last);
    if (m->last && (**text != '@' || child_error(*text)))
        child_keep_last(m->last[r], *text);
    return true;
}

void mpirun_begin(struct mpirun_report *m, int rank)
{
    if (m->last)
        child_begin(m->last[rank], &m->began[rank]);
}

void mpirun_name(const struct mpirun_report *m, int rank, char name[JOB_NAME])
{
    bool server = m->workers && rank >= m->workers;
    snprintf(name, JOB_NAME, server ? "server %d" : "rank %d",
             server ? rank - m->workers : rank);
}

int mpirun_silent(const struct mpirun_report *m, int n, char *out, size_t size)
{
    int silent = 0;
    size_t at = 0;
    *out = '\0';
    for (int r = 0; r < n && r < MPIRUN_RANKS; r++) {
        char name[JOB_NAME];
        if (m->heard[r])
            continue;
        mpirun_name(m, r, name);
        if (at < size)
            at += (size_t)snprintf(out + at, size - at, "%s%s",
                                   silent ? ", " : "", name);
        silent++;
    }
    return silent;
}

void mpirun_cause(const struct mpirun_report *m, char name[JOB_NAME],
                  int *status, const char **last)
{
    if (!m->failed) {
        *last = m->said;
        return;
    }
    mpirun_name(m, m->failed - 1, name);
    *status = m->signal ? m->signal : m->code << 8;
    if (m->last && m->failed <= MPIRUN_RANKS)
        *last = m->last[m->failed - 1];
}
