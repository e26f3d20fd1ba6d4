// child.h - one process of a job: spawned, read line by line, signalled.

#ifndef LOCKSTEP_CHILD_H
#define LOCKSTEP_CHILD_H

#include "lockstep/supervise.h"

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { CHILD_LINE = 4096, CHILD_LAST = 512, CHILD_STATUS = 80 };

struct stream {
    int fd; // -1 when closed
    size_t n;
    char text[CHILD_LINE]; // an unfinished line
};

struct child {
    enum job_kind kind;
    int rank;
    char name[JOB_NAME]; // "rank 0", "server 1", "mpirun"
    pid_t pid;
    bool alive;
    int status;               // of waitpid(), once not alive
    uint64_t again_ns;        // when it shall be started again; 0: never
    bool late;                // it was started again
    int input;                // our end of its stdin, or -1
    struct stream streams[2]; // stdout, stderr
    char last[CHILD_LAST];    // see child_keep_last()
    bool began;               // a worker has made progress
};

// Called with every line, without its newline; stream 0 is stdout.
typedef void child_line(void *ctx, struct child *c, int stream, char *text);

// Start it. `blocked` are the signals that we block and it must not. 0, or -1
// after fail().
int child_spawn(struct child *c, const struct job_child *what,
                const sigset_t *blocked);

// Read what stream s holds now, without waiting; closes it at its end.
void child_read(struct child *c, int s, child_line *fn, void *ctx);

// To the child and all that it started in its process group.
void child_signal(const struct child *c, int sig);

// Give up its streams; a line without a newline counts.
void child_close(struct child *c, child_line *fn, void *ctx);

// "exit code 3", "killed by signal 9 (SIGKILL, Killed)".
void child_status_text(int status, char out[CHILD_STATUS]);

// Keep `text` as the last line of a process. The line in which a process said
// why it ends (LOG_ERROR_MARK) stays, whatever follows.
void child_keep_last(char last[CHILD_LAST], const char *text);

// A worker makes progress: what it said before the first time tells nothing of
// a later failure.
void child_begin(char last[CHILD_LAST], bool *began);

// `text` behind LOG_ERROR_MARK; NULL if the mark is not there.
const char *child_error(const char *text);

// log_line() of a worker begins with "[rank] ": the text behind that.
char *child_without_rank(char *text, int rank);

#endif
