// calls.h - lab 1: the numbers of the grader's calls.

#ifndef LABS_SHARE_CALLS_H
#define LABS_SHARE_CALLS_H

#include "labs/01-share/share.h"

// All windows of a step, by worker; and lab_bcast().
enum { SHARE_WINDOWS, SHARE_BCAST };

enum { SHARE_MOST = 256 }; // windows of one step

#endif
