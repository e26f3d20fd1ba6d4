// term.h - the variant of each lab in this term. The handouts say the same in
// words. labs/export writes a term.h for each term, so that a solution of last
// term fails.

#ifndef LABS_TERM_H
#define LABS_TERM_H

#define LAB_TERM        "open"
#define LAB_DEALT       0 // lab 1: 1: a step's windows are dealt out like cards
#define LAB_TURNS       0 // lab 1: the order of the workers
#define LAB_ADD         0 // lab 2: the order of adding workers
#define LAB_ROWS_UP     0 // lab 3: 1: row 0 begins at element 0
#define LAB_PARTS       0 // lab 3: the order of the servers in a row
#define LAB_RING_STEP   1 // lab 4: 1: rank r sends to r+1; -1: to r-1
#define LAB_LONG        0 // lab 4: the order in which chunks get one more
#define LAB_CUT_UP      0 // lab 5: 1: bucket 0 begins at element 0
#define LAB_REST        0 // lab 5: 1: the second bucket is the short one
#define LAB_OWN         0 // lab 6: the order of the parts' owners
#define LAB_PUSH        0 // lab 7: p moves by lr/w, lr, lr/(2w), 2 lr/w
#define LAB_TIES        0 // lab 8: first: lower, higher index; +, - number
#define LAB_STEPS_DOWN  0 // lab 9: 1: steps count down: the smallest is newest
#define LAB_KEEP        0 // lab 9: prune keeps at least 1; 1 + keep; at least 2
#define LAB_RESULT      0 // lab 10: median, mean, upper median, geometric mean
#define LAB_SKIP_COUNTS 0 // lab 11: 1: a skipped step counts as an update
#define LAB_PART        0 // lab 11: the order of the parts' owners
#define LAB_STAGES      0 // lab 12: the order of the stages, forward
#define LAB_FRAGMENTS   0 // lab 13: the order in which fragments are due
#define LAB_OUTER       0 // lab 13: Nesterov, heavy ball, moving average
#define LAB_MERGE       0 // lab 13: later progress: dropped, half of it, kept
#define LAB_SHARE       0 // lab 15: which of equal workers gets a unit
#define LAB_ACT         0 // lab 15: h = 0, z/4, z/2 where z is not positive
#define LAB_RESIDUAL    0 // lab 15: how many times x is in y

// The place of number i in an order of 0 .. n-1. Order 0: 0, 1 .. n-1;
// 1: n-1 .. 1, 0; 2: 1, 2 .. n-1, 0; 3: n-1, 0, 1 .. n-2.
static inline int lab_place(int order, int i, int n)
{
    return order == 1   ? n - 1 - i
           : order == 2 ? (i + n - 1) % n
           : order == 3 ? (i + 1) % n
                        : i;
}

// The number at a place of an order.
static inline int lab_at(int order, int place, int n)
{
    return lab_place(order > 1 ? 5 - order : order, place, n);
}

#endif
