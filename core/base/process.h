// process.h - starts other programs and waits for them, with a deadline. No
// other file forks in order to run a program.
//
//     struct process p = {.words = words, .out = PROCESS_PIPE};
//     if (process_start(&p))
//         return -1;
//     read(p.ends[1], ..);
//     status = process_wait(&p, seconds);
//
// The idea is that of git's run-command.h.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

// What the child's standard input, output and errors are. Any number above 0 is
// a file descriptor of this process.
enum {
    PROCESS_INHERIT = 0,
    PROCESS_PIPE = -1, // ends[] has our end, which the caller closes
    PROCESS_NULL = -2, // /dev/null
};

struct process {
    char *const *words; // NULL-terminated; words[0] is a path, or in PATH
    int in, out, err;
    bool group; // it leads a process group of its own
    int orphan; // the signal that it gets when this process ends; 0: none
    // Called in the child before exec(), so it may only call functions that are
    // safe there. If it does not return 0, the child exits with what it
    // returned. NULL: nothing to do.
    int (*prepare)(void *arg);
    void *arg;
    // Filled in by process_start().
    pid_t pid;
    int ends[3]; // our ends of pipes, else -1
};

// The status of a child whose program cannot be executed.
enum { PROCESS_NO_PROGRAM = 127 };

// Starts a program. 0, or -1 after fail().
int process_start(struct process *p);

// Waits until the program has ended. After `seconds` it is killed, with its
// process group if it has one. Returns its exit status, which is 128 + N after
// signal N; or -1 after fail(), as for a program that was killed here.
int process_wait(struct process *p, double seconds);

// Starts a program and waits for it. Results as process_wait().
int process_run(struct process *p, double seconds);

// Runs a shell command; p->words is not used. Results as process_wait().
int process_shell(struct process *p, const char *command, double seconds);

// Runs a shell command, and writes the first line that it prints into
// line[size], without the newline.
int process_ask(const char *command, double seconds, char *line, size_t size);
