// answer.h - the process that runs a student's file: it answers the grader's
// calls.

#ifndef LABS_ANSWER_H
#define LABS_ANSWER_H

#include "labs/lab.h"
#include "labs/message.h"

// Calls one of the student's functions with the parts of a call. Every lab's
// answer.c has a table of them, by the number of the call.
typedef int64_t lab_answer(struct lab *l, const struct part *p);
extern lab_answer *const lab_answers[];
extern const int lab_n_answers;

// Calls a function that the grader offers while it waits for this answer.
// `what` is a number of the lab, from 0. Returns its result.
int64_t lab_back(int what, const struct part *parts, int n);

#endif
