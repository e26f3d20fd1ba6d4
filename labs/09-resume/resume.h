// resume.h - lab 9: what resume.c defines.

#ifndef LABS_RESUME_H
#define LABS_RESUME_H

#include "labs/disk.h"

// Store `bytes` bytes as the checkpoint of a step (0 .. 999999). Each step is
// larger than the one before. 0 where it will survive whatever comes; -1 where
// it could not be stored, and then the checkpoint before stands. Whoever is
// killed, or loses power, in here finds this checkpoint or the one before.
int checkpoint_save(struct disk *d, int step, const void *p, size_t bytes);

// The newest checkpoint that is whole: its step into *step, at most `most`
// bytes of it to p. How many bytes it has; -1 where there is none.
long checkpoint_resume(struct disk *d, int *step, void *p, size_t most);

// Remove all but the newest `keep` checkpoints, and what unfinished saves left.
// The newest one always stays. 0 or -1.
int checkpoint_prune(struct disk *d, int keep);

#endif
