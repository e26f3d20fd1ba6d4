// answers.h - rows of compressed gradients (squeeze=): adds the workers'
// messages up, and compresses the sum again.
//
// int8, sign: the sum is compressed with a residual of the server's own. topk:
// the answer is the union of the messages' entries, so nothing is lost.
//
// Whether a step is an update, workers find out after the answers. So what an
// answer lacks is kept when the first message of the next step says that there
// was an update (ps_wire/wire.h).

#pragma once

#include "ps_wire/job.h"
#include "ps_wire/wire.h"

#include <stddef.h>

struct answers; // of all rows of a server
struct buffer;
struct store;

// Opens the answers of a job with squeeze=. *job and *store are borrowed. 0, or
// -1 after fail(). answers_close() takes NULL.
int answers_open(struct answers **out, const struct ps_job *job,
                 const struct store *store);
void answers_close(struct answers **a);

// The bytes of a worker's message for a row.
size_t answers_message(const struct answers *a, int row);

// A message of a row, or a PULL of the residual, says how many updates there
// were.
void answers_keep(struct answers *a, int row, double updates);

// Begins the sum of a row, in step `step` of the run.
void answers_begin(struct answers *a, int row, uint64_t step);

// Adds a worker's message to the sum. 0, or -1 after fail() if it is malformed.
int answers_add(struct answers *a, int row, const void *message);

// The answer to a row, in a buffer that the caller gives back: `bytes` bytes of
// *what, PS_SQUEEZED or, if the sum itself is not longer, PS_GRADS. NULL after
// fail().
struct buffer *answers_take(struct answers *a, int row, enum ps_what *what,
                            size_t *bytes);

// The residual of a row, which is in the store's vector PS_RESIDUAL. NULL: the
// answers lack nothing.
float *answers_residual(const struct answers *a, int row);
