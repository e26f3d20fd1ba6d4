// folder.c - folders and small files that survive a crash.

#include "train/folder.h"

#include "base/base.h"
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PATH = 2048, LARGEST = 16 << 20 };

static int sync_folder(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return fail("%s: %s", path, strerror(errno));
    int rc = fsync(fd) ? fail("%s: %s", path, strerror(errno)) : 0;
    close(fd);
    return rc;
}

int folder_make(const char *path)
{
    if (file_remove_folder(path))
        return -1;
    return mkdir(path, 0777) ? fail("%s: %s", path, strerror(errno)) : 0;
}

int folder_replace(const char *next, const char *path)
{
    char parent[PATH];
    if (sync_folder(next) || text_into(parent, sizeof parent, "%s", path))
        return -1;
    char *slash = strrchr(parent, '/');
    CHECK(slash);
    *slash = '\0';
    if (!access(path, F_OK)) { // swap, so that `path` exists at all times
        if (syscall(SYS_renameat2, AT_FDCWD, next, AT_FDCWD, path,
                    RENAME_EXCHANGE))
            return fail("%s: %s", path, strerror(errno));
        return sync_folder(parent) || file_remove_folder(next) ? -1 : 0;
    }
    if (rename(next, path))
        return fail("%s: %s", path, strerror(errno));
    return sync_folder(parent);
}

int folder_write(const char *folder, const char *name, const char *text)
{
    char path[PATH];
    if (text_into(path, sizeof path, "%s/%s", folder, name))
        return -1;
    return file_replace_text(path, text);
}

char *folder_read(const char *folder, const char *name)
{
    char path[PATH];
    if (text_into(path, sizeof path, "%s/%s", folder, name))
        return NULL;
    return file_read(path, LARGEST);
}

bool folder_has(const char *folder, const char *name)
{
    char path[PATH];
    return !text_into(path, sizeof path, "%s/%s", folder, name) &&
           !access(path, F_OK);
}

int folder_lock(const char *out)
{
    char path[PATH];
    if (text_into(path, sizeof path, "%s/.lock", out))
        return -1;
    int fd = file_lock(path);
    return fd == FILE_LOCKED
               ? fail("out=%s: another job is writing there; try: another out=",
                      out)
               : fd;
}

void folder_unlock(int lock, const char *out)
{
    char path[PATH];
    if (!text_into(path, sizeof path, "%s/.lock", out))
        file_unlock(lock, path);
}

// The N of "checkpoint-N", or -1.
static int checkpoint_number(const char *name)
{
    int n = -1, used = 0;
    if (sscanf(name, "checkpoint-%9d%n", &n, &used) != 1 || name[used] || n < 0)
        return -1;
    return n;
}

int folder_newest(const char *out, int below)
{
    DIR *d = opendir(out);
    int newest = -1;
    if (!d)
        return -1;
    for (struct dirent *e; (e = readdir(d));) {
        int n = checkpoint_number(e->d_name);
        newest = n > newest && n < below ? n : newest;
    }
    closedir(d);
    return newest;
}

int folder_latest(const char *out)
{
    char *name = folder_has(out, "latest") ? folder_read(out, "latest") : NULL;
    if (name)
        name[strcspn(name, "\n")] = '\0';
    int n = name ? checkpoint_number(name) : -1;
    mem_free(name);
    return n;
}

// Renames checkpoint n to the first free name of checkpoint-n.aside-1, -2 ..:
// rename() does not replace a folder that has files.
static int move_aside(const char *out, int n)
{
    char path[PATH], aside[PATH];
    for (int k = 1;; k++) {
        if (text_into(path, sizeof path, "%s/checkpoint-%d", out, n) ||
            text_into(aside, sizeof aside, "%s.aside-%d", path, k))
            return -1;
        if (!rename(path, aside)) {
            log_line("%s is not in the past of this run: renamed to %s", path,
                     aside);
            return 0;
        }
        if (errno != ENOTEMPTY && errno != EEXIST)
            return fail("%s: %s", path, strerror(errno));
    }
}

static int write_latest(const char *out, int n)
{
    char name[64];
    snprintf(name, sizeof name, "checkpoint-%d", n);
    return folder_write(out, "latest", name);
}

int folder_rewind(const char *out, int step)
{
    char path[PATH];
    int newest;
    while ((newest = folder_newest(out, INT_MAX)) > step)
        if (move_aside(out, newest))
            return -1;
    if (newest == folder_latest(out))
        return 0;
    if (newest >= 0)
        return write_latest(out, newest);
    if (text_into(path, sizeof path, "%s/latest", out))
        return -1;
    return unlink(path) ? fail("%s: %s", path, strerror(errno)) : 0;
}

int folder_hold(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0)
        (void)flock(fd, LOCK_SH | LOCK_NB); // not all file systems can
    return fd;
}

int folder_turn(const char *out, double timeout_s)
{
    const uint64_t poll_ns = 5000000;
    uint64_t until = now_ns() + (uint64_t)(timeout_s * 1e9);
    int fd = open(out, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return fail("%s: %s", out, strerror(errno));
    while (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) {
        if (now_ns() > until) {
            close(fd);
            return fail("%s: another worker has been saving for %g s; try: "
                        "timeout=",
                        out, timeout_s);
        }
        sleep_ns(poll_ns);
    }
    return fd; // not all file systems can lock
}

// Renames a checkpoint that is not held to .old-N.
static int set_aside(const char *out, int n)
{
    char path[PATH], old[PATH];
    if (text_into(path, sizeof path, "%s/checkpoint-%d", out, n) ||
        text_into(old, sizeof old, "%s/.old-%d", out, n))
        return -1;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool held = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK;
    int rc = held ? 0 : rename(path, old);
    if (rc)
        fail("%s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return rc;
}

static int remove_old(const char *out, int n)
{
    char old[PATH];
    if (text_into(old, sizeof old, "%s/.old-%d", out, n))
        return -1;
    return file_remove_folder(old);
}

static int descending(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (y > x) - (y < x);
}

// No folder with a checkpoint's name may lack files, also after a loss of
// power. So files are removed only when their folder's other name is on the
// disk, and checkpoints only when the names of those that stay are there: an
// earlier save may have been killed before it synced them.
int folder_prune(const char *out, int keep)
{
    enum { MOST = 4096 };
    int numbers[MOST], count = 0, rc = 0;
    if (sync_folder(out))
        return -1;
    DIR *d = opendir(out);
    if (!d)
        return fail("%s: %s", out, strerror(errno));
    for (struct dirent *e; !rc && (e = readdir(d));) {
        int n = checkpoint_number(e->d_name);
        if (n >= 0 && count < MOST)
            numbers[count++] = n;
        char path[PATH];
        if (!strncmp(e->d_name, ".next-", 6) || !strncmp(e->d_name, ".old-", 5))
            rc = text_into(path, sizeof path, "%s/%s", out, e->d_name) ||
                 file_remove_folder(path);
    }
    closedir(d);
    if (rc || !keep || count <= keep)
        return rc ? -1 : 0;
    qsort(numbers, (size_t)count, sizeof *numbers, descending);
    for (int i = keep; !rc && i < count; i++)
        rc = set_aside(out, numbers[i]);
    rc = rc || sync_folder(out);
    for (int i = keep; !rc && i < count; i++)
        rc = remove_old(out, numbers[i]);
    return rc ? -1 : 0;
}

// In an elastic job another worker may have saved a later step meanwhile.
int folder_finish(const char *next, const char *out, const char *name, int keep)
{
    char path[PATH];
    return text_into(path, sizeof path, "%s/%s", out, name) ||
                   folder_replace(next, path) ||
                   write_latest(out, folder_newest(out, INT_MAX)) ||
                   folder_prune(out, keep)
               ? -1
               : 0;
}
