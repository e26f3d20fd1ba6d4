// recorded.h - what a run recorded about itself, as far as a picture of one
// step shows it. All that compares runs is in study/lockstep.

#ifndef LOCKSTEP_RECORDED_H
#define LOCKSTEP_RECORDED_H

#include <stdbool.h>
#include <stddef.h>

struct cJSON;

struct recorded {
    char backend[32], transport[16], consistency[16], shard[16];
    const struct backend *row; // NULL: this build has no such backend
    int world;
    bool oversubscribed;
    // Payload that a worker sends in a step, counted and by the law; NaN: not
    // recorded.
    double bytes_tx, law_bytes_tx;
};

// Reads DIR/run.json and DIR/summary.json. 0, or -1 after fail().
int recorded_read(struct recorded *r, const char *dir);

// Reads a JSON file of a run, of at most 4 MiB. The caller deletes it. NULL
// after fail().
struct cJSON *recorded_json(const char *dir, const char *name);

// Returns the number at "key" of an object; NaN if it is not there.
double recorded_number(const struct cJSON *object, const char *key);

// Returns the settings in a run.json, with derived ones; it points into `run`.
// Old files have one object for asked and derived settings together: then it
// returns that object.
const struct cJSON *recorded_settings(const struct cJSON *run);

#endif
