// result_law.h - computes the bytes and times that the law predicts for a
// finished run.

#ifndef LOCKSTEP_RESULT_LAW_H
#define LOCKSTEP_RESULT_LAW_H

#include "lockstep/result.h"

// Returns whether each worker has a server on its host.
bool result_beside(const struct result *r);

// Returns the number of steps from one exchange to the next.
int result_round(const struct result *r);

// Sets the metrics of the law, and its bytes by verb. The run's settings must
// have been read. `run` is its run.json, which has the model.
void result_law(struct result *r, const struct cJSON *run);

#endif
