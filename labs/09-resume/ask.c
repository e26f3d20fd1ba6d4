// ask.c - lab 9: the grader's calls of the functions of resume.c, and the disk
// that they use meanwhile.

#include "labs/ask.h"

#include "labs/09-resume/calls.h"

#include <string.h>

// The text of a part, which ends with a zero.
static char *text(const struct part *part)
{
    char *p = part->p;
    p[part->bytes - 1] = '\0';
    return p;
}

static int number(const struct part *part)
{
    int32_t n;
    memcpy(&n, part->p, sizeof n);
    return n;
}

// Calls that name a file.
static int64_t by_name(struct disk *d, int what, const struct part *p, int n)
{
    ask_wants(p, n, what == DISK_RENAME ? 2 : 1, (size_t[]){1, 1});
    switch (what) {
    case DISK_CREATE:
        return disk_create(d, text(p));
    case DISK_OPEN:
        return disk_open(d, text(p));
    case DISK_REMOVE:
        return disk_remove(d, text(p));
    default:
        return disk_rename(d, text(p), text(p + 1));
    }
}

// Calls with a descriptor.
static int64_t by_number(struct disk *d, int what, const struct part *p, int n)
{
    bool moves = what == DISK_WRITE || what == DISK_READ;
    ask_wants(p, n, moves ? 2 : 1, (size_t[]){sizeof(int32_t), 0});
    switch (what) {
    case DISK_WRITE:
        return disk_write(d, number(p), p[1].p, p[1].bytes);
    case DISK_READ:
        return disk_read(d, number(p), p[1].p, p[1].bytes);
    case DISK_SYNC:
        return disk_sync(d, number(p));
    default:
        return disk_close(d, number(p));
    }
}

static int64_t back(void *ctx, struct lab *l, int what, const struct part *p,
                    int n)
{
    (void)l;
    switch (what) {
    case DISK_CREATE:
    case DISK_OPEN:
    case DISK_RENAME:
    case DISK_REMOVE:
        return by_name(ctx, what, p, n);
    case DISK_SYNC_FOLDER:
        return disk_sync_folder(ctx);
    case DISK_LIST:
        ask_wants(p, n, 2, (size_t[]){sizeof(int32_t), DISK_NAME});
        return disk_list(ctx, number(p), p[1].p);
    default:
        return by_number(ctx, what, p, n);
    }
}

int checkpoint_save(struct disk *d, int step, const void *p, size_t bytes)
{
    struct part parts[] = {{&step, sizeof step, PART_IN},
                           {(void *)p, bytes, PART_IN}};
    return (int)ask(NULL, RESUME_SAVE, parts, 2, back, d);
}

long checkpoint_resume(struct disk *d, int *step, void *p, size_t most)
{
    struct part parts[] = {{step, sizeof *step, PART_BOTH},
                           {p, most, PART_BOTH}};
    return (long)ask(NULL, RESUME_RESUME, parts, 2, back, d);
}

int checkpoint_prune(struct disk *d, int keep)
{
    struct part parts[] = {{&keep, sizeof keep, PART_IN}};
    return (int)ask(NULL, RESUME_PRUNE, parts, 1, back, d);
}
