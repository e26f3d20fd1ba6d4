// scratch.c - makes, locks and removes folders.

#include "launch/scratch.h"

#include "base/base.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME "lockstep-mpi-"

static int remove_one(const char *path, const struct stat *is, int kind,
                      struct FTW *at)
{
    (void)is, (void)kind, (void)at;
    return remove(path);
}

// Removes a folder with all that it holds. Does not follow links.
static void remove_all(const char *path)
{
    enum { OPEN_FOLDERS = 16 };
    if (nftw(path, remove_one, OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS) &&
        errno != ENOENT)
        log_line("%s: %s", path, strerror(errno));
}

// Locks a folder of this user. Returns the descriptor that holds the lock; -1
// if another process has it, or the folder is not ours.
static int lock(const char *path)
{
    struct stat is;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -1;
    if (!fstat(fd, &is) && is.st_uid == geteuid() &&
        !flock(fd, LOCK_EX | LOCK_NB))
        return fd;
    close(fd);
    return -1;
}

// Removes the folders whose launcher has ended without doing so.
static void sweep(const char *base)
{
    DIR *d = opendir(base);
    if (!d)
        return;
    for (struct dirent *e; (e = readdir(d));) {
        char path[CONFIG_PATH];
        if (strncmp(e->d_name, NAME, strlen(NAME)) != 0 ||
            text_into(path, sizeof path, "%s/%s", base, e->d_name))
            continue;
        int fd = lock(path);
        if (fd < 0)
            continue;
        remove_all(path);
        close(fd);
    }
    closedir(d);
}

// Makes a folder in `base`. If another launcher swept it before it was locked,
// makes another one.
static int make(struct scratch *s, int i, const char *base)
{
    sweep(base);
    while (s->lock[i] < 0 || access(s->path[i], F_OK)) {
        if (s->lock[i] >= 0)
            close(s->lock[i]);
        s->lock[i] = -1;
        if (text_into(s->path[i], CONFIG_PATH, "%s/" NAME "XXXXXX", base))
            return -1;
        if (!mkdtemp(s->path[i])) {
            s->path[i][0] = '\0';
            return fail("%s: no folder for mpirun: %s; try: TMPDIR=", base,
                        strerror(errno));
        }
        s->lock[i] = lock(s->path[i]);
    }
    return 0;
}

int scratch_open(struct scratch **out)
{
    const char *base = getenv("TMPDIR"), *memory = "/dev/shm";
    struct scratch *s = *out = mem_alloc(1, sizeof *s);
    if (!s)
        return -1;
    s->lock[SCRATCH_FILES] = s->lock[SCRATCH_MEMORY] = -1;
    if (!base || !*base)
        base = "/tmp";
    if (access(memory, W_OK | X_OK))
        memory = base;
    if (make(s, SCRATCH_FILES, base) || make(s, SCRATCH_MEMORY, memory)) {
        scratch_close(out);
        return -1;
    }
    return 0;
}

void scratch_close(struct scratch **s)
{
    if (!*s)
        return;
    for (int i = 0; i < SCRATCHES; i++) {
        if (*(*s)->path[i])
            remove_all((*s)->path[i]);
        if ((*s)->lock[i] >= 0)
            close((*s)->lock[i]);
    }
    mem_free(*s);
    *s = NULL;
}
