// align.c - intersects the bounds that all barriers give for the offset.

#include "telemetry/align.h"

#include "base/base.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

uint64_t align_host(void)
{
    char boot[64] = "";
    struct stat time = {0}; // the namespace may shift the clock
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (!f)
        return 0;
    int got = fscanf(f, "%63s", boot);
    fclose(f);
    if (got != 1 || (stat("/proc/self/ns/time", &time) && errno != ENOENT))
        return 0;
    return hash_more(hash_bytes(boot, strlen(boot)), &time.st_ino,
                     sizeof time.st_ino);
}

int align_clocks(const struct align_round *mine, const struct align_round *zero,
                 int rounds, struct align *out)
{
    int64_t low = INT64_MIN, high = INT64_MAX;
    for (int i = 0; i < rounds; i++) {
        int64_t least = (int64_t)(mine[i].entered_ns - zero[i].left_ns);
        int64_t most = (int64_t)(mine[i].left_ns - zero[i].entered_ns);
        low = least > low ? least : low;
        high = most < high ? most : high;
    }
    CHECK(rounds > 0);
    if (low > high)
        return fail("clocks: %d barriers contradict each other by %lld ns",
                    rounds, (long long)(low - high));
    out->offset_ns = low + (high - low) / 2;
    out->error_ns = (high - low + 1) / 2;
    return 0;
}
