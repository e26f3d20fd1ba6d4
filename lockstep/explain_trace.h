// explain_trace.h - reads one step from a run's trace.json.

#ifndef LOCKSTEP_EXPLAIN_TRACE_H
#define LOCKSTEP_EXPLAIN_TRACE_H

#include "lockstep/recorded.h"

#include <stddef.h>

struct cJSON;

struct step_span { // one step of one worker
    int rank, step;
    double begin_us, end_us;
};

struct panel { // a run, and the step to show
    const char *folder;
    struct recorded run;
    struct step_span *steps;
    size_t nsteps, capacity;
    int step;
    double begin_us, end_us; // on the run's clock
};

// Calls take() for each event of RUN/trace.json: a line that holds one object
// and nothing else. If take() returns a value other than 0, stops and returns
// that value. Returns -1 after fail().
typedef int take_event(void *ctx, const struct cJSON *event);
int trace_each(const char *folder, take_event *take, void *ctx);

// Returns a member of an event as text or as a number; "" or NaN if it is not
// there. The text belongs to the event.
const char *event_word(const struct cJSON *event, const char *name);
double event_number(const struct cJSON *event, const char *name);

// Reads a run and chooses its step (0: the step of median length). *p must be
// zeroed. 0, or -1 after fail(). Close it in both cases.
int panel_open(struct panel *p, const char *folder, int step);
void panel_close(struct panel *p);

// Writes the name of a panel: "ring over tcp, 2 workers".
void panel_name(const struct panel *p, char text[128]);

#endif
