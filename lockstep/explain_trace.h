// explain_trace.h - one step out of a run's trace.json.

#ifndef LOCKSTEP_EXPLAIN_TRACE_H
#define LOCKSTEP_EXPLAIN_TRACE_H

#include "lockstep/result.h"

#include <stddef.h>

struct cJSON;

struct step_span { // a step of a worker
    int rank, step;
    double begin_us, end_us;
};

struct panel { // a run, and the step of it that is shown
    const char *folder;
    struct result result;
    struct step_span *steps;
    size_t nsteps, room;
    int step;
    double begin_us, end_us; // on the run's clock
};

// The events of RUN/trace.json, as text without a comma behind it, and parsed.
// Stops at the first that take() does not return 0 for, and returns that; -1
// after fail().
typedef int take_event(void *ctx, const char *line, const struct cJSON *event);
int trace_each(const char *folder, take_event *take, void *ctx);

// Members of an event: "" and NaN where there are none.
const char *event_word(const struct cJSON *event, const char *name);
double event_number(const struct cJSON *event, const char *name);

// Read a run and choose its step (0: the one of median length), in a zeroed *p.
// 0, or -1 after fail(). Close it either way.
int panel_open(struct panel *p, const char *folder, int step);
void panel_close(struct panel *p);

// "ring over tcp, 2 workers"
void panel_name(const struct panel *p, char text[128]);

#endif
