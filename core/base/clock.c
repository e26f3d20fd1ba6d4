// clock.c - time: wall and CPU, in nanoseconds.

#include "base/base.h"

#include <errno.h>
#include <time.h>

static uint64_t read_clock(clockid_t id)
{
    struct timespec t;
    CHECK(clock_gettime(id, &t) == 0);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t now_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

uint64_t cpu_process_ns(void)
{
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

void sleep_ns(uint64_t ns)
{
    struct timespec t = {.tv_sec = (time_t)(ns / 1000000000u),
                         .tv_nsec = (long)(ns % 1000000000u)};
    while (nanosleep(&t, &t) < 0 && errno == EINTR)
        ;
}
