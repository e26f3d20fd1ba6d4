// beat.c - a thread that prints a line every second.

#include "base/beat.h"

#include "base/base.h"

#include <pthread.h>
#include <stdlib.h>

static const uint64_t every_ns = 1000000000;

static void say(const char *line)
{
    printf("%s\n", line);
    fflush(stdout);
}

static void *beat(void *arg)
{
    (void)arg;
    for (;;) {
        sleep_ns(every_ns);
        say(BEAT_ALIVE);
    }
    return NULL;
}

int beat_begin(void)
{
    pthread_t thread;
    say(BEAT_HERE);
    if (!getenv(BEAT_VARIABLE))
        return 0;
    if (pthread_create(&thread, NULL, beat, NULL))
        return fail("no thread left for signs of life");
    pthread_detach(thread);
    return 0;
}

void beat_end(void)
{
    if (getenv(BEAT_VARIABLE))
        say(BEAT_DONE);
}
