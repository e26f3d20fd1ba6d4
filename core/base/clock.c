// clock.c - time: wall and CPU, in nanoseconds.

#include "base/base.h"

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

uint64_t cpu_thread_ns(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}
