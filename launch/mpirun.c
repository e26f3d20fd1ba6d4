// mpirun.c - tells which rank printed a line of mpirun's output, and collects
// mpirun's own messages.

#include "launch/mpirun.h"

#include "base/base.h"
#include "base/beat.h"

#include <stdlib.h>
#include <string.h>

// Keeps what a line of mpirun's own says about a failure (openmpi.c).
static void note(struct mpirun_failure *f, const char *text)
{
    int rank, code, sig;
    const char *by_signal = strstr(text, "exited on signal ");
    bool named = sscanf(text, " Process name: [[%*d,%*d],%d]", &rank) == 1 ||
                 sscanf(text, " Process name: [%*[^],],%d]", &rank) == 1;
    if (named && !f->rank)
        f->rank = rank + 1;
    else if (sscanf(text, " Exit code: %d", &code) == 1 && !f->code)
        f->code = code;
    else if (sscanf(text, "%*[a-z] noticed that process rank %d", &rank) == 1) {
        f->rank = rank + 1;
        if (by_signal)
            f->signal = atoi(by_signal + strlen("exited on signal "));
    } else if (f->rank && !f->signal && sscanf(text, "signal %d (", &sig) == 1)
        f->signal = sig; // 5: on a line of its own
}

// Adds a line of mpirun's own to its first paragraph. A rule of dashes ends the
// paragraph; with some versions an empty line does, too.
static void note_words(struct mpirun_report *m, const char *text)
{
    size_t at = strlen(m->said);
    text += strspn(text, " \t");
    bool blank = !*text, rule = !blank && !text[strspn(text, "-")];
    if (rule || (blank && m->words->blank_ends))
        m->said_all = at > 0;
    else if (blank)
        return;
    else if (!m->said_all)
        snprintf(m->said + at, sizeof m->said - at, "%s%s", at ? " " : "",
                 text);
}

// Removes further tags from a line. mpirun reads a rank's output in pieces and
// puts its tag before each piece, even within a line. The tag is `n` bytes.
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
        note(&m->failure, *text);
        note_words(m, *text);
        return false;
    }
    size_t end = strlen(m->words->tag_end);
    if (!strncmp(*text + used, m->words->tag_end, end))
        used += (int)end;
    remove_tags(*text + used, *text, (size_t)used);
    *text = child_without_rank(*text + used, r);
    *rank = r;
    *stream = strcmp(which, "stderr") == 0;
    m->quiet_s[r] = 0;
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

bool mpirun_beat(struct mpirun_report *m, int rank, const char *text)
{
    bool here = !strcmp(text, BEAT_HERE), done = !strcmp(text, BEAT_DONE);
    m->here[rank] |= here;
    m->done[rank] |= done;
    return here || done || !strcmp(text, BEAT_ALIVE);
}

// Writes the names of the ranks below `n` that have been silent for `limit_s`
// seconds: "rank 1, server 0". `here`: of those that have joined the others, or
// of those that have not. Returns how many they are.
static int list_late(const struct mpirun_report *m, int n, bool here,
                     double limit_s, char *out, size_t size)
{
    int late = 0;
    size_t at = 0;
    *out = '\0';
    for (int r = 0; r < n && r < MPIRUN_RANKS; r++) {
        char name[JOB_NAME];
        if (m->done[r] || m->here[r] != here || m->quiet_s[r] < limit_s)
            continue;
        mpirun_name(m, r, name);
        if (at < size)
            at += (size_t)snprintf(out + at, size - at, "%s%s",
                                   late ? ", " : "", name);
        late++;
    }
    return late;
}

bool mpirun_late(struct mpirun_report *m, double seconds, char *why,
                 size_t size)
{
    const struct mpirun_limits *most = &m->most;
    char who[256];
    int n = most->ranks, late;
    if (most->start_s <= 0)
        return false;
    for (int r = 0; r < n && r < MPIRUN_RANKS; r++)
        m->quiet_s[r] += seconds;
    if (list_late(m, n, true, most->quiet_s, who, sizeof who)) {
        // with those that fell silent at the same time, but said a line later
        late = list_late(m, n, true, most->quiet_s / 2, who, sizeof who);
        snprintf(why, size,
                 "mpirun: no sign of life of %d of %d processes within %g s: "
                 "%s",
                 late, n, most->quiet_s, who);
        return true;
    }
    late = list_late(m, n, false, most->start_s, who, sizeof who);
    if (late)
        snprintf(why, size,
                 "%d of %d processes did not start within %g s: %s; try: a "
                 "larger timeout=",
                 late, n, most->start_s, who);
    return late > 0;
}

bool mpirun_lacks(const struct mpirun_report *m, char *why, size_t size)
{
    char who[256];
    int n = m->most.ranks;
    int late =
        m->most.start_s > 0 ? list_late(m, n, false, 0, who, sizeof who) : 0;
    if (late)
        snprintf(why, size,
                 "mpirun: ended, but %d of %d processes never came: "
                 "%s%s%s",
                 late, n, who, *m->said ? "; " : "", m->said);
    return late > 0;
}

bool mpirun_done(const struct mpirun_report *m)
{
    int done = 0, n = m->most.ranks;
    for (int r = 0; r < n && r < MPIRUN_RANKS; r++)
        done += m->done[r];
    return n > 0 && done == n;
}

void mpirun_cause(const struct mpirun_report *m, char name[JOB_NAME],
                  int *status, const char **last)
{
    if (!m->failure.rank) {
        *last = m->said;
        return;
    }
    mpirun_name(m, m->failure.rank - 1, name);
    *status = m->failure.signal ? m->failure.signal : m->failure.code << 8;
    if (m->last && m->failure.rank <= MPIRUN_RANKS)
        *last = m->last[m->failure.rank - 1];
}
