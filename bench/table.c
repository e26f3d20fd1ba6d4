// table.c - the sizes and the rows of a bench's table.

#include "bench/table.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "config/config.h"
#include "config/suggest.h"
#include "group/group.h"

#include <string.h>

// The number of sizes with `bytes`, which may be no other than the last.
static int add_size(size_t counts[TABLE_SIZES], int n, double bytes)
{
    counts[n] = (size_t)(bytes / sizeof(float));
    return n && counts[n] == counts[n - 1] ? n : n + 1;
}

int table_sizes(double min_bytes, double max_mb, double factor,
                size_t counts[TABLE_SIZES])
{
    double most = max_mb * 1048576;
    int n = 0;
    for (double b = min_bytes; n < TABLE_SIZES; b *= factor) {
        bool last = b * factor > most * 1.001 && b < most * 0.999;
        n = add_size(counts, n, b);
        if (last && n < TABLE_SIZES)
            n = add_size(counts, n, most);
        if (b * factor > most * 1.001)
            break;
    }
    return n;
}

int table_choose(const char *command, const char *key, const char *text,
                 const char *const *names, int n, bool *use)
{
    char item[CONFIG_WORD], nearest[SUGGEST_TEXT];
    bool all = !strcmp(text, "all");
    for (int i = 0; i < n; i++)
        use[i] = all;
    for (const char *p = text; !all; p++) {
        size_t len = strcspn(p, ",");
        int i = 0;
        snprintf(item, sizeof item, "%.*s", (int)len, p);
        while (i < n && strcmp(item, names[i]) != 0)
            i++;
        if (i == n)
            return fail("%s=%s: unknown name %s%s; all: lockstep %s --help",
                        key, text, item,
                        suggest_text(nearest, "; nearest: ", item, names, n),
                        command);
        use[i] = true;
        p += len;
        if (!*p)
            break;
    }
    return 0;
}

int table_leave_out(struct cluster *c, const char *name,
                    const struct group_ops *carrier, bool *use)
{
    struct group_job members = {.name = name, .cluster = c};
    char why[128];
    if (!*use || !carrier || c->world == 1)
        return 0;
    int can = group_is_supported(carrier, &members, why);
    if (can == 0 && c->rank == 0)
        printf("# %s: %s\n", name, why);
    *use = can > 0;
    return can < 0 ? -1 : 0;
}
