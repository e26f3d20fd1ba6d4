// resume.h - lab 9: the functions that resume.c defines.

#ifndef LABS_RESUME_H
#define LABS_RESUME_H

#include "labs/disk.h"

// Stores `bytes` bytes at p as the checkpoint of a step (0 .. 999999); the
// handout says in which order steps come. Returns 0 if the checkpoint is stored
// and will survive a kill and a loss of power. Returns -1 if it could not be
// stored; then the checkpoint before remains. If the process is killed or loses
// power in here, checkpoint_resume() finds this checkpoint or the one before.
int checkpoint_save(struct disk *d, int step, const void *p, size_t bytes);

// Reads the newest whole checkpoint: its step to *step, and at most `most` of
// its bytes to p. Returns the number of bytes read, or -1 if there is none.
long checkpoint_resume(struct disk *d, int *step, void *p, size_t most);

// Removes all but the newest `keep` checkpoints, and the files that unfinished
// saves left. The newest checkpoint always stays. Returns 0 or -1.
int checkpoint_prune(struct disk *d, int keep);

#endif
