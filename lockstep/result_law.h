// result_law.h - what the law says of a run that is over.

#ifndef LOCKSTEP_RESULT_LAW_H
#define LOCKSTEP_RESULT_LAW_H

#include "lockstep/result.h"

// Whether each worker has a server beside it.
bool result_beside(const struct result *r);

// Steps from one exchange to the next.
int result_round(const struct result *r);

// The law's metrics of a run whose settings are read, and its bytes by verb.
// `run` is its run.json, for the model.
void result_law(struct result *r, const struct cJSON *run);

#endif
