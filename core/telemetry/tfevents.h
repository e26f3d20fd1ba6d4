// tfevents.h - scalars for TensorBoard: OUT/events.out.tfevents.SECONDS.HOST

#pragma once

#include <stdint.h>

struct tfevents;

// tfevents_open() makes a new file in the folder `out`. tfevents_close() does
// nothing if *t is NULL. All return 0, or -1 after fail().
int tfevents_open(struct tfevents **t, const char *out);
int tfevents_scalar(struct tfevents *t, const char *tag, int64_t step,
                    double value);
int tfevents_close(struct tfevents **t);
