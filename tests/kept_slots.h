// kept_slots.h - the slots that a world of workers saves, in memory that forked
// workers share, and files of numbers that a script has computed.

#pragma once

#include "tests/sync_cases.h"

#include "base/base.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { N = 1003, SLOTS = 2 + 1 + 2 * CASE_WORLDS };
struct kept {
    bool given[SLOTS];
    char name[SLOTS][SYNC_SLOT_NAME];
    float at[SLOTS][N], params[N];
};
static struct kept *kept;

// For cmocka's table, before all tests.
static inline int kept_open(void **state)
{
    (void)state;
    kept = mmap(NULL, sizeof *kept, PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return kept == MAP_FAILED;
}

static inline int slot_named(const char *name)
{
    int i = 0;
    while (i < SLOTS && strcmp(kept->name[i], name))
        i++;
    return i;
}

struct visitor {
    struct worker *w;
};

// Slots are kept by number. A file finds them by name.
static inline int keep(void *ctx, int slot, size_t off, float *v, size_t n)
{
    const struct visitor *x = ctx;
    sync_slot_name(x->w->sync, slot, kept->name[slot]);
    memcpy(kept->at[slot] + off, v, n * sizeof *v);
    kept->given[slot] = true;
    return 0;
}

static inline int give(void *ctx, int slot, size_t off, float *v, size_t n)
{
    const struct visitor *x = ctx;
    char name[SYNC_SLOT_NAME];
    sync_slot_name(x->w->sync, slot, name);
    int i = slot_named(name);
    if (i == SLOTS || !kept->given[i])
        return SYNC_ABSENT;
    memcpy(v, kept->at[i] + off, n * sizeof *v);
    return 0;
}

// The sum of all that workers keep of element i.
static inline double kept_sum(size_t i)
{
    double sum = 0;
    for (int s = 0; s < SLOTS; s++)
        if (kept->given[s] && !strncmp(kept->name[s], "residual", 8))
            sum += (double)kept->at[s][i];
    return sum;
}

// Reads a file of N numbers. 0, or -1 after fail().
static inline int read_oracle(const char *path, double sum[N])
{
    FILE *f = fopen(path, "r");
    int n = 0;
    while (f && n < N && fscanf(f, "%lf", &sum[n]) == 1)
        n++;
    if (f)
        fclose(f);
    return n == N ? 0 : fail("%s: %d numbers", path, n);
}
