// table.h - what the tables of sync_perf and collect_perf share: the sizes and
// numbers of vectors, and the choice of rows.

#pragma once

#include <stdbool.h>
#include <stddef.h>

struct cluster;
struct group_ops;

enum { TABLE_SIZES = 64 };

// Fills counts with the numbers of elements of fp32 vectors from min_bytes
// bytes to max_mb MiB. Each is `factor` times the one before, except the last,
// which has max_mb MiB. Returns how many there are, at most TABLE_SIZES.
int table_sizes(double min_bytes, double max_mb, double factor,
                size_t counts[TABLE_SIZES]);

// Element i of the vector of worker `rank`: a small integer, which differs by
// worker and element. So sums are exact, and every result is known. It is
// inline because workers fill their vectors right before an exchange is
// measured: where they are more than the processors, a longer filling makes the
// exchange slower.
static inline float table_number(int rank, size_t i)
{
    return (float)((int)((i * 7 + (size_t)rank * 13) % 61) - 30);
}

// Sets use[i] for the names[i] that `text`, the value of key=, lists: "a,b" or
// "all". `command` is for the error message. 0, or -1 after fail().
int table_choose(const char *command, const char *key, const char *text,
                 const char *const *names, int n, bool *use);

// Clears *use if the row's carrier (NULL: none) cannot run on these hosts, and
// worker 0 prints why. All workers call it for the same rows. 0, or -1 after
// fail().
int table_leave_out(struct cluster *c, const char *name,
                    const struct group_ops *carrier, bool *use);
