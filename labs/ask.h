// ask.h - the grader's side of a student's functions: it calls them in the
// processes that run the student's file (answer.c).

#ifndef LABS_ASK_H
#define LABS_ASK_H

#include "labs/lab.h"
#include "labs/message.h"

// Functions that the student's function may call back: number `what` of the
// lab, with its parts. A part that has too few bytes must be refused: see
// ask_wants().
typedef int64_t ask_back(void *ctx, struct lab *l, int what,
                         const struct part *parts, int n);

// Starts the program of a student's file. Dies if it cannot. stack: the most
// bytes of stack of a rank; 0: any number.
void ask_open(const char *program, size_t stack);
void ask_close(void);

// Calls the student's function number `what` on rank l->rank, and returns its
// result. l is NULL for a function that has no rank. `back` may be NULL. If the
// process ends, this process ends in the same way.
int64_t ask(struct lab *l, int what, const struct part *parts, int n,
            ask_back *back, void *ctx);

// Ends this process with a message, unless a message has n parts of at least
// these bytes: only a file that does not use lab.h sends another one.
void ask_wants(const struct part *parts, int n, int count, const size_t *bytes);

// What a bool is that a file has written: its byte may be neither 0 nor 1.
bool ask_bool(const bool *b);

// Where the bytes of a message that a student's function sent came from: vector
// `part` of the grader's call, from 0, `off` bytes on; part -1: other memory.
struct ask_sent {
    int from, to, part;
    size_t off, bytes;
};

// Message number `number` (from 0) from one virtual rank to another in this
// run; NULL: it is not known.
const struct ask_sent *ask_message(int from, int to, size_t number);

// Forgets the messages of a run. `fault` gets what a rank did wrong with them;
// "" if nothing.
void ask_reset(char fault[256]);

#endif
