// term.h - the variant of each lab in this term. The handouts say the same in
// words. labs/export writes a term.h for each term, so that a solution of last
// term fails.

#ifndef LABS_TERM_H
#define LABS_TERM_H

#define LAB_TERM        "open"
#define LAB_DEALT       0 // lab 1: 1: a step's windows are dealt out like cards
#define LAB_ADD_DOWN    0 // lab 2: 1: worker 0 is added last
#define LAB_ROWS_UP     0 // lab 3: 1: row 0 begins at element 0
#define LAB_RING_STEP   1 // lab 4: 1: rank r sends to r+1; -1: to r-1
#define LAB_LONG_LAST   0 // lab 4: 1: the longer chunks are the last ones
#define LAB_CUT_UP      0 // lab 5: 1: bucket 0 begins at element 0
#define LAB_OWN_DOWN    0 // lab 6: 1: worker 0 owns the last part
#define LAB_FULL_STEP   0 // lab 7: 1: a push moves p by lr, not by lr/w
#define LAB_TIES_HIGH   0 // lab 8: 1: of equals the higher index is sent
#define LAB_STEPS_DOWN  0 // lab 9: 1: steps count down: the smallest is newest
#define LAB_MEAN_COUNTS 0 // lab 10: 1: the mean of repeats, not the median
#define LAB_SKIP_COUNTS 0 // lab 11: 1: a skipped step counts as an update
#define LAB_STAGES_DOWN 0 // lab 12: 1: stage 0 is the last one forward

#endif
