// seats.h - which process each worker is, and where: for run.json.

#ifndef TRAIN_SEATS_H
#define TRAIN_SEATS_H

struct manifest;
struct seat;
struct trainer;

// Those of all workers, by rank; freed with mem_free(). A call of all workers.
// NULL after fail().
struct seat *seats_gather(const struct trainer *t);

// The object "workers": host, process and GPU of each rank.
void seats_write(struct manifest *m, const struct seat *seats, int world);

#endif
