// settle.h - reads the words of `lockstep train`, and finds what is wrong with
// them before anything is started or written.

#pragma once

struct run;

// Reads settings into *r, with those of the run that resume= names and the
// hosts that the scheduler gave. 0, or -1 after fail().
int settle_words(struct run *r, int nwords, char *const *words);

// Whether the job may start, as far as this is known by now. An empty out= is a
// folder that train will choose. 0, or -1 after fail().
int settle_check(const struct run *r);
