// calls.h - the numbers of the calls that a student's process makes, and what
// passes with a call of the grader.

#ifndef LABS_CALLS_H
#define LABS_CALLS_H

#include <stdint.h>

enum lab_call {
    CALL_SEND,    // IN slot, IN the bytes
    CALL_RECV,    // IN slot with the number of bytes
    CALL_WAIT,    // IN slots, OUT errors, then OUT the bytes of each receive
    CALL_ANY,     // OUT a struct lab_note, OUT the bytes
    CALL_NOW,     // OUT seconds
    CALL_COMPUTE, // IN seconds
    CALL_ALLOC,   // IN two sizes
    CALL_MISSING, // IN rank, IN text
    CALL_CHANGED, // IN slot: its bytes were changed before the wait
    CALL_BACK,    // from here on: functions of the lab
};

enum { CALL_SLOTS = 1024 }; // messages of a rank under way

// A message under way. part, off: where its first byte is in the vectors of the
// grader's call, by number and in bytes; part -1: in none of them. They serve
// only to tell the student.
struct call_slot {
    int64_t slot, peer;
    uint64_t bytes;
    int64_t part;
    uint64_t off;
};

// The first part of every call of the grader: the rank that calls.
struct call_place {
    int32_t rank, workers, servers, thread;
    int32_t fresh; // the first call of a run: nothing is under way
    int32_t spare;
    double alpha_s, bytes_per_s;
};

#endif
