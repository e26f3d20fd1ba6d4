// identity.h - collects for run.json which process each worker is, and where it
// runs.

#ifndef TRAIN_IDENTITY_H
#define TRAIN_IDENTITY_H

struct manifest;
struct identity;
struct trainer;

// Collects the identities of all workers, by rank. All workers call it. The
// caller frees the result with mem_free(). NULL after fail().
struct identity *identity_gather(const struct trainer *t);

// Writes the object "workers": host, process and GPU of each of `world` ranks.
void identity_write(struct manifest *m, const struct identity *all, int world);

#endif
