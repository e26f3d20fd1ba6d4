// place.h - how many workers predict and fit ask about, and on how many hosts.

#ifndef LOCKSTEP_PLACE_H
#define LOCKSTEP_PLACE_H

struct run;

struct place {
    int hosts, slots; // slots: workers on each host; 0: not given
};

// Completes *p. `workers` is the number of all of them by workers= or mesh=, or
// 0 without these. Without any number each host has PLACE_SLOTS. 0, or -1 after
// fail() if the numbers contradict each other; `who` is the command's name.
enum { PLACE_SLOTS = 8 };
int place_workers(struct place *p, int workers, const char *who);

// The threads of a worker on a host of `workers` workers: threads=, or its
// share of this machine's cores, at least 1.
int place_threads(const struct run *r, int workers);

#endif
