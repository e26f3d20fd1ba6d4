// reference.c - lab 9: write under another name, sync, rename, sync the folder.

#include "labs/09-resume/resume.h"

#include <stdio.h>
#include <string.h>

static const char unfinished[] = "unfinished", mark[] = "checkpoint-";

// A checkpoint's name holds its place: newer checkpoints have larger places.
// Converts a step to its place, and a place to its step.
static int place(int step)
{
    return step;
}

// The place in a checkpoint's name; -1: it is not the name of a checkpoint.
static int place_of(const char *name)
{
    int at = 0;
    if (strncmp(name, mark, sizeof mark - 1) != 0)
        return -1;
    for (const char *c = name + sizeof mark - 1; *c; c++)
        at = 10 * at + (*c - '0');
    return at;
}

// The largest place below `below`; -1: there is none.
static int newest(struct disk *d, int below)
{
    char name[DISK_NAME];
    int best = -1;
    for (int i = 0; disk_list(d, i, name) == 0; i++) {
        int at = place_of(name);
        best = at < below && at > best ? at : best;
    }
    return best;
}

static int write_all(struct disk *d, int file, const char *p, size_t bytes)
{
    while (bytes > 0) {
        long n = disk_write(d, file, p, bytes);
        if (n <= 0)
            return -1;
        p += n;
        bytes -= (size_t)n;
    }
    return 0;
}

int checkpoint_save(struct disk *d, int step, const void *p, size_t bytes)
{
    char name[DISK_NAME];
    snprintf(name, sizeof name, "%s%d", mark, place(step));
    int file = disk_create(d, unfinished);
    if (file < 0)
        return -1;
    int err = write_all(d, file, p, bytes);
    err = err || disk_sync(d, file);
    err = disk_close(d, file) || err;
    err = err || disk_rename(d, unfinished, name);
    err = err || disk_sync_folder(d);
    if (err)
        disk_remove(d, unfinished);
    return err ? -1 : 0;
}

long checkpoint_resume(struct disk *d, int *step, void *p, size_t most)
{
    char name[DISK_NAME];
    int best = newest(d, 1 << 30);
    snprintf(name, sizeof name, "%s%d", mark, best);
    int file = best < 0 ? -1 : disk_open(d, name);
    if (file < 0)
        return -1;
    long n = disk_read(d, file, p, most);
    disk_close(d, file);
    *step = place(best);
    return n;
}

int checkpoint_prune(struct disk *d, int keep)
{
    char name[DISK_NAME];
    int oldest = 1 << 30;
    // The name of the newest may not have been synced: its save was killed.
    if (disk_sync_folder(d))
        return -1;
    for (int i = 0; i < (keep < 1 ? 1 : keep) && oldest >= 0; i++)
        oldest = newest(d, oldest);
    disk_remove(d, unfinished);
    for (int at = newest(d, oldest); at >= 0; at = newest(d, at)) {
        snprintf(name, sizeof name, "%s%d", mark, at);
        if (disk_remove(d, name))
            return -1;
    }
    return disk_sync_folder(d);
}
