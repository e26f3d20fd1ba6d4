// recorded.h - the JSON files of a run. All that compares runs is in
// study/lockstep.

#ifndef LOCKSTEP_RECORDED_H
#define LOCKSTEP_RECORDED_H

struct cJSON;

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
