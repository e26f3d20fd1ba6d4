// progress.h - one line on the terminal for the whole job.
//
// Every worker prints lines that begin with "@progress ", then key=value pairs:
//
//     @progress rank=0 world=2 step=120 steps=500 loss=2.31 tokens_per_s=18000
//     eta_s=40 line=1
//
// (one line each). What is shown is worker 0's loss and the rates of all added
// up. On a terminal the line is redrawn in place; elsewhere each of worker 0's
// with line=1 is a line.

#ifndef LOCKSTEP_PROGRESS_H
#define LOCKSTEP_PROGRESS_H

// A worker that has met MPI, and can speak for itself, says PROGRESS_HERE.

#define PROGRESS_MARK "@progress "
#define PROGRESS_HERE "@here"

struct progress;

// Drawn on stderr. 0, or -1 after fail().
int progress_open(struct progress **p);
void progress_close(struct progress **p);

// A line that began with PROGRESS_MARK, without the mark.
void progress_take(struct progress *p, const char *pairs);

// Take the line away before something else is printed; put it back after.
void progress_hide(struct progress *p);
void progress_show(struct progress *p);

// The last step reported, for the closing words; 0 before the first.
long progress_step(const struct progress *p);

#endif
