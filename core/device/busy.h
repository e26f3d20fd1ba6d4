// busy.h - how long a queue was at work, without waiting for it.
//
// Two events mark a stretch of work; their distance is added up when both have
// happened, which may be a step later. Utilisation by events: this over the
// wall time of the same steps.

#ifndef DEVICE_BUSY_H
#define DEVICE_BUSY_H

#include "device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { BUSY_STRETCHES = 256 }; // that may be under way at once

struct busy {
    struct device *dev;
    enum device_queue queue;
    struct device_event from[BUSY_STRETCHES], to[BUSY_STRETCHES];
    uint64_t begun, ended, counted; // stretches
    uint64_t ns;                    // of those counted, since busy_take()
};

// 0, or -1 after fail(). busy_close() takes a zeroed one.
int busy_open(struct busy *b, struct device *d, enum device_queue q);
void busy_close(struct busy *b);

// Around what is asked of the queue. Stretches do not nest.
int busy_begin(struct busy *b);
int busy_end(struct busy *b);

// *ns = the length of all stretches that have ended since the last call.
int busy_take(struct busy *b, uint64_t *ns);

#ifdef __cplusplus
}
#endif

#endif
