// identity.h - collects for run.json which process each worker is, and where it
// runs.

#pragma once

struct manifest;
struct identity;
struct trainer;

// Collects the identities of all workers, by rank. All workers call it. The
// caller frees the result with mem_free(). NULL after fail().
struct identity *identity_gather(const struct trainer *t);

// The lowest rank of which there is an identity: an elastic job may have lost
// others.
int identity_first(const struct identity *all);

// Writes the object "workers": host, process and GPU of each of `world` ranks.
// "own_cores": whether no two of them may use the same core.
void identity_write(struct manifest *m, const struct identity *all, int world);
