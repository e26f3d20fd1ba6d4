// second.c - lab 9, written from the handout alone: a file for each checkpoint,
// with the step in its name.

#include "labs/09-resume/resume.h"

#include <stdio.h>
#include <string.h>

static const char unfinished[] = "saving";

// The step of a checkpoint's name, or -1.
static int step_of(const char *name)
{
    int step = 0;
    if (strncmp(name, "step-", 5) != 0)
        return -1;
    for (name += 5; *name; name++)
        step = 10 * step + (*name - '0');
    return step;
}

// Returns the number of checkpoints, and the steps of the oldest and the
// newest.
static int count(struct disk *d, int *oldest, int *newest)
{
    char name[DISK_NAME];
    int n = 0;
    for (int i = 0; disk_list(d, i, name) == 0; i++) {
        int step = step_of(name);
        if (step < 0)
            continue;
        *oldest = n && *oldest < step ? *oldest : step;
        *newest = n && *newest > step ? *newest : step;
        n++;
    }
    return n;
}

int checkpoint_save(struct disk *d, int step, const void *p, size_t bytes)
{
    char name[DISK_NAME];
    snprintf(name, sizeof name, "step-%d", step);
    int file = disk_create(d, unfinished);
    if (file < 0)
        return -1;
    const char *from = p;
    for (size_t done = 0; done < bytes;) {
        long n = disk_write(d, file, from + done, bytes - done);
        if (n <= 0) {
            disk_close(d, file);
            disk_remove(d, unfinished);
            return -1;
        }
        done += (size_t)n;
    }
    int err = disk_sync(d, file);
    if (disk_close(d, file) || err)
        return -1;
    if (disk_rename(d, unfinished, name))
        return -1;
    return disk_sync_folder(d);
}

long checkpoint_resume(struct disk *d, int *step, void *p, size_t most)
{
    char name[DISK_NAME];
    int oldest, newest;
    if (count(d, &oldest, &newest) == 0)
        return -1;
    snprintf(name, sizeof name, "step-%d", newest);
    int file = disk_open(d, name);
    if (file < 0)
        return -1;
    *step = newest;
    long n = disk_read(d, file, p, most);
    disk_close(d, file);
    return n;
}

int checkpoint_prune(struct disk *d, int keep)
{
    char name[DISK_NAME];
    int oldest, newest;
    keep = keep < 1 ? 1 : keep;
    if (disk_sync_folder(d)) // a save may have been killed before it did this
        return -1;
    int file = disk_open(d, unfinished);
    if (file >= 0 && (disk_close(d, file) || disk_remove(d, unfinished)))
        return -1;
    while (count(d, &oldest, &newest) > keep) {
        snprintf(name, sizeof name, "step-%d", oldest);
        if (disk_remove(d, name))
            return -1;
    }
    return disk_sync_folder(d);
}
