// staging.c - a pinned host copy of a device's vector, piece by piece.

#include "device/staging.h"

#include "device/busy.h"

#include "base/base.h"

struct staging {
    struct device *dev;
    float *vector, *host; // the same if nothing is copied
    size_t n;
    struct device_event filled; // what the compute queue has written so far
    struct device_event up;     // the last copy to the device
    struct device_event *down;  // by piece, its copy to the host
    int pieces;
    bool copies;
};

int staging_open(struct staging **out, struct device *d, float *vector,
                 size_t n, int pieces, bool always)
{
    CHECK(pieces > 0);
    struct staging *s = mem_alloc(1, sizeof *s);
    if (!s)
        return -1;
    *s = (struct staging){.dev = d, .vector = vector, .n = n};
    s->copies = always || !device_is_host(d);
    s->host = vector;
    if (!s->copies) {
        *out = s;
        return 0;
    }
    s->host = device_host_alloc(d, n, sizeof *s->host);
    s->down = mem_alloc((size_t)pieces, sizeof *s->down);
    if (!s->host || !s->down || device_event_open(d, &s->filled) ||
        device_event_open(d, &s->up))
        goto close_staging;
    for (; s->pieces < pieces; s->pieces++)
        if (device_event_open(d, &s->down[s->pieces]))
            goto close_staging;
    *out = s;
    return 0;

close_staging:
    staging_close(&s);
    return -1;
}

void staging_close(struct staging **ss)
{
    struct staging *s = *ss;
    if (!s)
        return;
    if (s->copies) {
        device_finish(s->dev); // a copy may not be complete yet
        for (int i = 0; i < s->pieces; i++)
            device_event_close(s->dev, &s->down[i]);
        device_event_close(s->dev, &s->up);
        device_event_close(s->dev, &s->filled);
        mem_free(s->down);
        device_host_free(s->dev, s->host);
    }
    mem_free(s);
    *ss = NULL;
}

float *staging_host(const struct staging *s)
{
    return s->host;
}

void staging_down(struct staging *s, int piece, size_t off, size_t n)
{
    CHECK(off + n <= s->n);
    if (!s->copies)
        return;
    CHECK(piece >= 0 && piece < s->pieces);
    device_record(s->dev, &s->filled, DEVICE_COMPUTE);
    device_follow(s->dev, DEVICE_DOWN, &s->filled);
    busy_begin(s->dev, DEVICE_DOWN);
    device_copy_on(s->dev, DEVICE_DOWN, s->host + off, s->vector + off,
                   n * sizeof(float));
    busy_end(s->dev, DEVICE_DOWN);
    device_record(s->dev, &s->down[piece], DEVICE_DOWN);
}

void staging_await(const struct staging *s, int piece)
{
    if (!s->copies)
        return;
    CHECK(piece >= 0 && piece < s->pieces);
    device_wait(s->dev, &s->down[piece]);
}

void staging_up(struct staging *s, size_t off, size_t n)
{
    CHECK(off + n <= s->n);
    if (!s->copies)
        return;
    busy_begin(s->dev, DEVICE_UP);
    device_copy_on(s->dev, DEVICE_UP, s->vector + off, s->host + off,
                   n * sizeof(float));
    busy_end(s->dev, DEVICE_UP);
}

void staging_settle(struct staging *s)
{
    if (!s->copies)
        return;
    device_record(s->dev, &s->up, DEVICE_UP);
    device_follow(s->dev, DEVICE_COMPUTE, &s->up);
}
