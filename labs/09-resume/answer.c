// answer.c - lab 9: calls the functions of resume.c for the grader. The disk is
// the grader's: a call of disk.h asks for it.

#include "labs/answer.h"

#include "labs/09-resume/calls.h"

#include <string.h>

struct disk { // the student's file sees only its address
    char nothing;
};

static struct part text(const char *s)
{
    return (struct part){(void *)s, strlen(s) + 1, PART_IN};
}

static struct part number(int32_t *n)
{
    return (struct part){n, sizeof *n, PART_IN};
}

int disk_create(struct disk *d, const char *name)
{
    struct part p = text(name);
    (void)d;
    return (int)lab_back(DISK_CREATE, &p, 1);
}

int disk_open(struct disk *d, const char *name)
{
    struct part p = text(name);
    (void)d;
    return (int)lab_back(DISK_OPEN, &p, 1);
}

long disk_write(struct disk *d, int file, const void *p, size_t bytes)
{
    struct part parts[] = {number(&file), {(void *)p, bytes, PART_IN}};
    (void)d;
    return (long)lab_back(DISK_WRITE, parts, 2);
}

long disk_read(struct disk *d, int file, void *p, size_t bytes)
{
    struct part parts[] = {number(&file), {p, bytes, PART_BOTH}};
    (void)d;
    return (long)lab_back(DISK_READ, parts, 2);
}

int disk_sync(struct disk *d, int file)
{
    struct part p = number(&file);
    (void)d;
    return (int)lab_back(DISK_SYNC, &p, 1);
}

int disk_close(struct disk *d, int file)
{
    struct part p = number(&file);
    (void)d;
    return (int)lab_back(DISK_CLOSE, &p, 1);
}

int disk_rename(struct disk *d, const char *from, const char *to)
{
    struct part parts[] = {text(from), text(to)};
    (void)d;
    return (int)lab_back(DISK_RENAME, parts, 2);
}

int disk_remove(struct disk *d, const char *name)
{
    struct part p = text(name);
    (void)d;
    return (int)lab_back(DISK_REMOVE, &p, 1);
}

int disk_sync_folder(struct disk *d)
{
    (void)d;
    return (int)lab_back(DISK_SYNC_FOLDER, NULL, 0);
}

int disk_list(struct disk *d, int i, char name[DISK_NAME])
{
    struct part parts[] = {number(&i), {name, DISK_NAME, PART_BOTH}};
    (void)d;
    return (int)lab_back(DISK_LIST, parts, 2);
}

static int64_t save(struct lab *l, const struct part *p)
{
    struct disk d;
    (void)l;
    return checkpoint_save(&d, *(int *)p[0].p, p[1].p, p[1].bytes);
}

static int64_t resume(struct lab *l, const struct part *p)
{
    struct disk d;
    (void)l;
    return checkpoint_resume(&d, p[0].p, p[1].p, p[1].bytes);
}

static int64_t prune(struct lab *l, const struct part *p)
{
    struct disk d;
    (void)l;
    return checkpoint_prune(&d, *(int *)p[0].p);
}

lab_answer *const lab_answers[] = {save, resume, prune};
const int lab_n_answers = 3;
