// resume.c - lab 9: checkpoints that are whole or absent.

#include "labs/09-resume/resume.h"

#include <stdio.h>

// One file, written in place.
int checkpoint_save(struct disk *d, int step, const void *p, size_t bytes)
{
    int file = disk_create(d, "checkpoint");
    if (file < 0)
        return -1;
    disk_write(d, file, &step, sizeof step);
    disk_write(d, file, p, bytes);
    return disk_close(d, file);
}

long checkpoint_resume(struct disk *d, int *step, void *p, size_t most)
{
    int file = disk_open(d, "checkpoint");
    if (file < 0)
        return -1;
    disk_read(d, file, step, sizeof *step);
    long n = disk_read(d, file, p, most);
    disk_close(d, file);
    return n;
}

int checkpoint_prune(struct disk *d, int keep)
{
    (void)d;
    (void)keep;
    return 0;
}
