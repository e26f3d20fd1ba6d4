// busy.c - how long a queue was at work, without waiting for it.

#include "device/busy.h"

#include "base/base.h"

int busy_open(struct busy *b, struct device *d, enum device_queue q)
{
    *b = (struct busy){.dev = d, .queue = q};
    for (int i = 0; i < BUSY_STRETCHES; i++)
        if (device_event_open(d, &b->from[i]) ||
            device_event_open(d, &b->to[i]))
            return -1;
    return 0;
}

void busy_close(struct busy *b)
{
    for (int i = 0; b->dev && i < BUSY_STRETCHES; i++) {
        device_event_close(b->dev, &b->from[i]);
        device_event_close(b->dev, &b->to[i]);
    }
    *b = (struct busy){0};
}

// Add up the oldest stretches, as far as they are over.
static int count(struct busy *b)
{
    while (b->counted < b->ended) {
        int i = (int)(b->counted % BUSY_STRETCHES);
        int over = device_reached(b->dev, &b->to[i]);
        uint64_t ns;
        if (over <= 0)
            return over;
        if (device_between(b->dev, &b->from[i], &b->to[i], &ns))
            return -1;
        b->ns += ns;
        b->counted++;
    }
    return 0;
}

int busy_begin(struct busy *b)
{
    CHECK(b->begun == b->ended);
    int i = (int)(b->begun % BUSY_STRETCHES);
    if (b->begun - b->counted == BUSY_STRETCHES && count(b))
        return -1;
    if (b->begun - b->counted == BUSY_STRETCHES &&
        (device_wait(b->dev, &b->to[i]) || count(b)))
        return -1;
    b->begun++;
    return device_record(b->dev, &b->from[i], b->queue);
}

int busy_end(struct busy *b)
{
    CHECK(b->begun == b->ended + 1);
    int i = (int)(b->ended++ % BUSY_STRETCHES);
    return device_record(b->dev, &b->to[i], b->queue);
}

int busy_take(struct busy *b, uint64_t *ns)
{
    if (count(b))
        return -1;
    *ns = b->ns;
    b->ns = 0;
    return 0;
}
