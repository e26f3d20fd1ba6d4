// reach.h - a conversation with `lockstep probe` on another host, which was
// started as a worker would be. Every wait has a deadline.

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
    int in, out; // its standard input, its output and errors
    long asked;  // questions so far
    size_t n;
    char text[REACH_TEXT]; // read, and not looked at yet
    char last[256];        // its last line that was no answer
};

// Start it. Nobody has answered yet. 0, or -1 after fail().
int reach_open(struct reach *r, const struct host *host);

// Ask; then take the answer to the last question before `until` (now_ns());
// what comes late of earlier ones is passed over. 0, or -1 after fail(): it has
// ended and with which words, it is silent, or what it could not do.
int reach_ask(struct reach *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
int reach_take(struct reach *r, uint64_t until, char *out, size_t size);

// Its input ends; whoever has not ended a second later is killed.
void reach_close(struct reach *r);

#endif
