// term.h - the variant of each lab in this term. The handouts say the same in
// words. labs/export writes a term.h for each term, so that a solution of last
// term fails.

#ifndef LABS_TERM_H
#define LABS_TERM_H

#define LAB_TERM        "open"
#define LAB_DEALT       0 // lab 1: whole batches; like cards; to and fro
#define LAB_TURNS       0 // lab 1: the order of the workers
#define LAB_BACKWARDS   0 // lab 1: epochs go backwards: none, odd ones, all
#define LAB_ADD         0 // lab 2: the order of adding workers
#define LAB_RULE        0 // lab 2: mean; sum; mean and decay
#define LAB_SKIP        0 // lab 2: overflow: skip; only there; skip, halve lr
#define LAB_ROWS_UP     0 // lab 3: 1: row 0 begins at element 0
#define LAB_PARTS       0 // lab 3: the order of the servers in a row
#define LAB_MORE        0 // lab 3: the order in which parts get one more
#define LAB_RING_STEP   1 // lab 4: 1: rank r sends to r+1; -1: to r-1
#define LAB_LONG        0 // lab 4: the order in which chunks get one more
#define LAB_OWNER       0 // lab 4: chunk c is summed on worker c, c+1, c-1
#define LAB_CUT_UP      0 // lab 5: 1: bucket 0 begins at element 0
#define LAB_REST        0 // lab 5: short is the last; the second; all alike
#define LAB_TOO_MANY    0 // lab 5: too many buckets: -1; 0; their number
#define LAB_OWN         0 // lab 6: the order of the parts' owners
#define LAB_SHRINK      0 // lab 6: scale after an overflow: 1/2, 1/4, 1/8
#define LAB_GROW        0 // lab 6: scale after good steps: 2, 4, 8 times
#define LAB_PUSH        0 // lab 7: p moves by lr/w, lr, lr/(2w), 2 lr/w
#define LAB_AHEAD       0 // lab 7: ahead by at most 1, 2, 3 times the bound
#define LAB_ANSWER      0 // lab 7: any first; highest rank; longest wait
#define LAB_TIES        0 // lab 8: first: lower, higher index; +, - number
#define LAB_SUM_ORDER   0 // lab 8: the order of adding workers
#define LAB_MEAN        0 // lab 8: the sum; divided by w; by 2w
#define LAB_STEPS_DOWN  0 // lab 9: 1: steps count down: the smallest is newest
#define LAB_KEEP        0 // lab 9: prune keeps at least 1; 1 + keep; at least 2
#define LAB_AGAIN       0 // lab 9: an older step: never; refused; goes back
#define LAB_RESULT      0 // lab 10: median, mean, upper median, geometric mean
#define LAB_ENOUGH      0 // lab 10: three repeats are enough; four; five
#define LAB_MISSED      0 // lab 10: a factor's slack: 1/100, 1/20, 1/1000
#define LAB_SKIP_COUNTS 0 // lab 11: a skipped step: no; counts; begin anew
#define LAB_NORM        0 // lab 11: squares: their sum; largest part; mean
#define LAB_PART        0 // lab 11: the order of the parts' owners
#define LAB_STAGES      0 // lab 12: the order of the stages, forward
#define LAB_MICRO       0 // lab 12: the order of the micro-batches
#define LAB_PIECES      0 // lab 12: pieces from 0; from 1; from the last
#define LAB_FRAGMENTS   0 // lab 13: the order in which fragments are due
#define LAB_OUTER       0 // lab 13: Nesterov, heavy ball, moving average
#define LAB_MERGE       0 // lab 13: later progress: dropped, half of it, kept
#define LAB_GRAM        0 // lab 14: the order of the columns
#define LAB_OWED        0 // lab 14: what is owed: M - g, 1/2 or 3/4 of it
#define LAB_RANK        0 // lab 14: rank at most a side, 1/2, 1/3 of a side
#define LAB_SHARE       0 // lab 15: which of equal workers gets a unit
#define LAB_ACT         0 // lab 15: h = 0, z/4, z/2 where z is not positive
#define LAB_RESIDUAL    0 // lab 15: how many times x is in y
#define LAB_LONGER      0 // lab 16: the order in which pieces get one more
#define LAB_LOW         0 // lab 16: the order of the workers' first pieces
#define LAB_LSE         0 // lab 16: lse is a logarithm to base e, 2, 10

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
