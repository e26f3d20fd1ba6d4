// message.h - the messages between the grader and the process that runs a
// student's file.
//
// Each side can call a function of the other: the grader calls the student's
// functions, and while such a call lasts, the student's process calls those of
// lab.h. A call has a number, and parts: vectors that it reads, writes, or
// both. Nothing else passes between the two processes.

#ifndef LABS_MESSAGE_H
#define LABS_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

enum { PART_IN = 1, PART_OUT = 2, PART_BOTH = 3 };

// A vector of a call. IN: the callee gets its bytes; OUT: the caller gets them
// back.
struct part {
    void *p;
    size_t bytes;
    unsigned way;
};

enum { MESSAGE_PARTS = 320 }; // the most parts of one call

enum message_kind { MESSAGE_CALL, MESSAGE_DONE };

struct message {
    uint32_t kind;
    int32_t what;   // of a call: the number of the function
    int64_t result; // of MESSAGE_DONE
    uint64_t parts;
};

// One end of the connection. Small messages are received in one piece.
struct wire {
    int fd;
    size_t at, end; // of the bytes that are received but not used yet
    char bytes[4096];
};

// Send a call, or the end of one. Return 0, or -1 if the other side has ended.
int message_call(struct wire *w, int what, const struct part *parts, int n);
int message_done(struct wire *w, int64_t result, const struct part *parts,
                 int n);

// Receives the next message, without its parts. Returns 0, or -1 if the other
// side has ended.
int message_next(struct wire *w, struct message *m);

// After MESSAGE_CALL: receives its parts, at most MESSAGE_PARTS. Their memory
// is allocated, and what is only written holds NaN. message_free() frees it.
// Returns 0, or -1 after fail(): then nothing is left allocated.
int message_parts(struct wire *w, const struct message *m, struct part *parts);
void message_free(struct part *parts, size_t n);

// After MESSAGE_DONE: receives what the callee has written. Returns 0, or -1
// after fail().
int message_results(struct wire *w, const struct message *m,
                    const struct part *parts, int n);

#endif
