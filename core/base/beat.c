// beat.c - a thread that prints a line every second.

#include "base/beat.h"

#include "base/base.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const uint64_t every_ns = 1000000000;

// Past stdio, which may hold the first half of another thread's line. If nobody
// reads any more, the launcher is gone, and this process ends by other means.
static void say(const char *line)
{
    ssize_t n = write(STDOUT_FILENO, line, strlen(line));
    (void)n;
}

static void *beat(void *arg)
{
    (void)arg;
    for (;;) {
        sleep_ns(every_ns);
        say(BEAT_ALIVE "\n");
    }
    return NULL;
}

int beat_begin(void)
{
    pthread_t thread;
    if (!getenv(BEAT_VARIABLE))
        return 0;
    say(BEAT_HERE "\n");
    if (pthread_create(&thread, NULL, beat, NULL))
        return fail("no thread left for signs of life");
    pthread_detach(thread);
    return 0;
}

void beat_end(void)
{
    fflush(stdout);
    if (getenv(BEAT_VARIABLE))
        say(BEAT_DONE "\n");
}
