// progress.h - shows one line on the terminal for the whole job.
//
// Each worker prints lines with "@progress " and key=value pairs
// (train/progress.h).
//
// The terminal's line shows worker 0's loss and the sum of all workers' rates.
// It is redrawn in place. If stderr is no terminal, a new line is printed for
// each report of worker 0 with line=1.

#pragma once

#define PROGRESS_MARK "@progress "

struct progress;

// Opens a line on stderr. The caller closes *p. 0, or -1 after fail().
int progress_open(struct progress **p);
void progress_close(struct progress **p);

// Takes a report: the line of a worker without PROGRESS_MARK.
void progress_take(struct progress *p, const char *pairs);

// Erase the line before something else is printed, and draw it again after.
void progress_hide(struct progress *p);
void progress_show(struct progress *p);

// Returns the last step that worker 0 reported; 0 before its first report.
long progress_step(const struct progress *p);
