// busy.c - keeps rings of events: one ring for each queue, and one for steps.

#include "device/busy.h"

#include "base/base.h"

enum { METERS = DEVICE_QUEUES + 1, STEPS = DEVICE_QUEUES }; // the last: steps

struct meter {
    enum device_queue queue;
    struct device_event from[BUSY_STRETCHES], to[BUSY_STRETCHES];
    uint64_t begun, ended, counted; // stretches
};

struct mark {
    uint64_t ended_ns;
    uint64_t upto[METERS]; // by meter, stretches up to this step's end
};

struct busy {
    struct meter meters[METERS];
    struct mark marks[BUSY_STEPS];
};

int busy_open(struct device *d)
{
    CHECK(!d->busy);
    d->busy = mem_alloc(1, sizeof *d->busy);
    if (!d->busy)
        return -1;
    for (int m = 0; m < METERS; m++) {
        struct meter *t = &d->busy->meters[m];
        t->queue = m == STEPS ? DEVICE_COMPUTE : (enum device_queue)m;
        for (int i = 0; i < BUSY_STRETCHES; i++)
            if (device_event_open_timed(d, &t->from[i]) ||
                device_event_open_timed(d, &t->to[i])) {
                busy_close(d);
                return -1;
            }
    }
    return 0;
}

void busy_close(struct device *d)
{
    for (int m = 0; d->busy && m < METERS; m++)
        for (int i = 0; i < BUSY_STRETCHES; i++) {
            device_event_close(d, &d->busy->meters[m].from[i]);
            device_event_close(d, &d->busy->meters[m].to[i]);
        }
    mem_free(d->busy);
    d->busy = NULL;
}

// Begins a new stretch. If `capacity` stretches are under way, the newest goes
// on instead, so that no thread has to wait.
static void begin(struct device *d, struct meter *t, uint64_t capacity)
{
    CHECK(t->begun == t->ended);
    if (t->begun - t->counted == capacity)
        t->ended--;
    else
        device_record(d, &t->from[t->begun++ % BUSY_STRETCHES], t->queue);
}

static void end(struct device *d, struct meter *t)
{
    CHECK(t->begun == t->ended + 1);
    device_record(d, &t->to[t->ended++ % BUSY_STRETCHES], t->queue);
}

void busy_begin(struct device *d, enum device_queue q)
{
    if (d->busy)
        begin(d, &d->busy->meters[q], BUSY_STRETCHES);
}

void busy_end(struct device *d, enum device_queue q)
{
    if (d->busy)
        end(d, &d->busy->meters[q]);
}

void busy_step_begin(struct device *d)
{
    if (d->busy)
        begin(d, &d->busy->meters[STEPS], BUSY_STEPS);
}

void busy_step_end(struct device *d)
{
    if (!d->busy)
        return;
    uint64_t step = d->busy->meters[STEPS].ended;
    struct mark *k = &d->busy->marks[step % BUSY_STEPS];
    k->ended_ns = now_ns();
    for (int m = 0; m < METERS; m++)
        k->upto[m] = d->busy->meters[m].ended;
    k->upto[STEPS]++;
    end(d, &d->busy->meters[STEPS]);
}

// Whether stretches up to `upto` are over.
static bool over(struct device *d, const struct meter *t, uint64_t upto)
{
    return t->counted == upto ||
           device_reached(d, &t->to[(upto - 1) % BUSY_STRETCHES]);
}

// The sum of the stretches up to `upto` that were not counted yet, in ns.
static uint64_t count(struct device *d, struct meter *t, uint64_t upto)
{
    uint64_t ns = 0;
    for (; t->counted < upto; t->counted++) {
        int i = (int)(t->counted % BUSY_STRETCHES);
        ns += device_between(d, &t->from[i], &t->to[i]);
    }
    return ns;
}

bool busy_take(struct device *d, struct busy_step *out)
{
    struct busy *b = d->busy;
    if (!b || b->meters[STEPS].counted == b->meters[STEPS].ended)
        return false;
    const struct mark *k = &b->marks[b->meters[STEPS].counted % BUSY_STEPS];
    for (int m = 0; m < METERS; m++)
        if (!over(d, &b->meters[m], k->upto[m]))
            return false;
    out->ended_ns = k->ended_ns;
    out->ns = count(d, &b->meters[STEPS], k->upto[STEPS]);
    for (int q = 0; q < DEVICE_QUEUES; q++)
        out->at[q] = count(d, &b->meters[q], k->upto[q]);
    return true;
}
