// beat.h - signs of life of a process that the launcher does not start itself.
//
// mpirun stands between its ranks and the launcher. If it freezes, the launcher
// hears nothing of anybody, and cannot tell this from ranks that compute. So a
// rank prints a line every second until it is done. The launcher sets a
// variable (BEAT_VARIABLE) for processes that are to do so.

#pragma once

#define BEAT_VARIABLE "LOCKSTEP_BEAT"
// The lines: the process has joined the others; it lives; all are done.
#define BEAT_HERE  "@here"
#define BEAT_ALIVE "@alive"
#define BEAT_DONE  "@done"

// If the variable is set, prints the first line, and a thread prints the second
// one from now on, as long as the process lives. 0, or -1 after fail().
int beat_begin(void);

// Prints the last line, if the variable is set.
void beat_end(void);
