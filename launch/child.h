// child.h - spawns one process of a job, reads it line by line and signals it.

#pragma once

#include "launch/supervise.h"

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { CHILD_LINE = 4096, CHILD_LAST = 512 };

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
    int status;        // of waitpid(), once not alive
    uint64_t again_ns; // when it will be started again; 0: never
    bool undecided;    // it died, alone or like all (elastic.h)
    bool late;         // it was started again
    bool stopped;      // by SIGSTOP, for so long:
    double stopped_s;
    int input;                // our end of its stdin, or -1
    struct stream streams[2]; // stdout, stderr
    char last[CHILD_LAST];    // see child_keep_last()
    bool began;               // it is a worker that has made progress
};

// Called with every line, without its newline; stream 0 is stdout.
typedef void child_line(void *ctx, struct child *c, int stream, char *text);

// Starts a process and fills *c. `blocked` are the signals that this process
// blocks; the child unblocks them. 0, or -1 after fail().
int child_spawn(struct child *c, const struct job_child *what,
                const sigset_t *blocked);

// Reads what stream s (0: stdout, 1: stderr) has now, without waiting, and
// calls fn() for each complete line. At the end of the stream, closes it.
void child_read(struct child *c, int s, child_line *fn, void *ctx);

// Sends a signal to the child and to all processes of its process group.
void child_signal(const struct child *c, int sig);

// `seconds` have passed. If a signal has stopped the child for `most` seconds,
// kills it, writes to line[] that it does so, and returns true.
bool child_kill_stopped(struct child *c, double seconds, double most,
                        char line[CHILD_LINE]);

// Returns whether one of n children is alive.
bool child_any_alive(const struct child *c, int n);

// Returns whether a signal has stopped one of n children of this kind.
bool child_any_stopped(const struct child *c, int n, enum job_kind kind);

// Ranks failed children: the highest is the likeliest cause. A child killed by
// a signal is likelier than one that ended with an error. A worker is likelier
// than a server, which ends with an error when a worker is gone.
int child_guilt(const struct child *c);

// Reads the rest of both streams and closes them and the child's input. A last
// line without a newline counts as a line.
void child_close(struct child *c, child_line *fn, void *ctx);

// Kills processes that ended children left behind. They are our children now
// (subreaper).
void child_kill_strays(void);

// Keeps `text` as the last line of a process. A line with LOG_ERROR_MARK, in
// which a process says why it ends, is never replaced.
void child_keep_last(char last[CHILD_LAST], const char *text);

// Call it when a worker makes progress. The first call drops the line that
// child_keep_last() has kept, unless that is an error: what a worker printed
// before its first step cannot explain a later failure.
void child_begin(char last[CHILD_LAST], bool *began);

// Returns the part of `text` behind LOG_ERROR_MARK; NULL if `text` does not
// begin with the mark.
const char *child_error(const char *text);

// Calls fail() with the reason why a process ended: the error in its last line,
// or else its status ("killed by signal 9 (SIGKILL, Killed)") and that line.
// `when` is put behind the name or the status. Returns -1.
int child_fail(const char *name, int status, const char *last,
               const char *when);

// Returns the part of `text` behind "[rank] ", with which a worker's log_line()
// begins; `text` itself if it does not begin so.
char *child_without_rank(char *text, int rank);
