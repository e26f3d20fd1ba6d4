// identity.h - which process each worker is, and where: for run.json.

#ifndef TRAIN_IDENTITY_H
#define TRAIN_IDENTITY_H

struct manifest;
struct identity;
struct trainer;

// Those of all workers, by rank; freed with mem_free(). A call of all workers.
// NULL after fail().
struct identity *identity_gather(const struct trainer *t);

// The object "workers": host, process and GPU of each rank.
void identity_write(struct manifest *m, const struct identity *all, int world);

#endif
