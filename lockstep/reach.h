// reach.h - starts `lockstep probe` on another host, as a worker would be
// started, and asks it questions. Every wait has a deadline.

#ifndef LOCKSTEP_REACH_H
#define LOCKSTEP_REACH_H

#include "lockstep/hosts.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { REACH_TEXT = 1024 };

struct reach {
    const struct host *host;
    pid_t pid;
    int in, out; // pipes to its standard input, and from its output and errors
    long asked;  // questions so far
    size_t n;
    char text[REACH_TEXT]; // n bytes that were read but not yet taken
    char last[256];        // its last line that was no answer
};

// Starts the probe, without waiting for it. `host` is borrowed. 0, or -1 after
// fail().
int reach_open(struct reach *r, const struct host *host);

// reach_ask() sends a question. reach_take() waits until the time `until`, of
// now_ns(), for its answer, and skips late answers to earlier questions. 0, or
// -1 after fail() with the probe's error or last line, or if there is no answer
// in time.
int reach_ask(struct reach *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
int reach_take(struct reach *r, uint64_t until, char *out, size_t size);

// Ends the probe's input. Kills it if it has not ended a second later.
void reach_close(struct reach *r);

#endif
