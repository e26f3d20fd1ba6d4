// noted_calls.c - calls of the system that are also noted on the disk of lab 9.

#include "tests/noted_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/test.h"

struct noted noted;

// The linker sends every call of NAME to __wrap_NAME, and __real_NAME to NAME.
int __real_mkdir(const char *path, mode_t mode);
int __real_openat(int at, const char *path, int flags, ...);
ssize_t __real_write(int fd, const void *p, size_t bytes);
int __real_fsync(int fd);
int __real_close(int fd);
int __real_rename(const char *from, const char *to);
int __real_renameat(int a, const char *from, int b, const char *to);
long __real_syscall(long number, ...);
int __real_unlink(const char *path);
int __real_unlinkat(int at, const char *path, int flags);
int __real_rmdir(const char *path);
int __wrap_mkdir(const char *path, mode_t mode);
int __wrap_openat(int at, const char *name, int flags, mode_t mode);
ssize_t __wrap_write(int fd, const void *p, size_t bytes);
int __wrap_fsync(int fd);
int __wrap_close(int fd);
int __wrap_rename(const char *from, const char *to);
int __wrap_renameat(int a, const char *from, int b, const char *to);
long __wrap_syscall(long number, long a, long b, long c, long d, long e);
int __wrap_unlink(const char *path);
int __wrap_unlinkat(int at, const char *path, int flags);
int __wrap_rmdir(const char *path);

// ---- the folders of the disk

bool noted_read(struct disk *d, const char *key, char text[128])
{
    int file = disk_open(d, key);
    if (file < 0)
        return false;
    long n = disk_read(d, file, text, 127);
    assert_true(n >= 0);
    text[n] = '\0';
    assert_int_equal(disk_close(d, file), 0);
    return true;
}

// The name on the disk of a path below the root: "FOLDER/NAME".
static void key_of(const char *path, char key[DISK_NAME])
{
    char text[128];
    int folder = 0;
    assert_memory_equal(path, noted.root, strlen(noted.root));
    path += strlen(noted.root) + 1;
    for (const char *slash; (slash = strchr(path, '/')); path = slash + 1) {
        snprintf(key, DISK_NAME, "%d/%.*s", folder, (int)(slash - path), path);
        assert_true(noted_read(noted.disk, key, text));
        assert_int_equal(sscanf(text, "folder %d", &folder), 1);
    }
    snprintf(key, DISK_NAME, "%d/%s", folder, path);
}

static void path_of(int fd, const char *name, char path[PATH_MAX])
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, PATH_MAX - 64);
    assert_true(n > 0);
    snprintf(path + n, (size_t)(PATH_MAX - n), "%s%s", name ? "/" : "",
             name ? name : "");
}

// Counts a call that changes the disk. Returns false if the process is dead.
static bool is_alive(void)
{
    noted.left -= noted.disk && noted.left > 0;
    errno = EIO;
    return !noted.disk || noted.left > 0;
}

int __wrap_mkdir(const char *path, mode_t mode)
{
    char key[DISK_NAME], text[32];
    if (!is_alive())
        return -1;
    if (noted.disk) {
        key_of(path, key);
        snprintf(text, sizeof text, "folder %d", ++noted.folders);
        int file = disk_create(noted.disk, key);
        assert_true(file >= 0);
        disk_write(noted.disk, file, text, strlen(text));
        disk_sync(noted.disk, file);
        disk_close(noted.disk, file);
    }
    return __real_mkdir(path, mode);
}

int __wrap_openat(int at, const char *name, int flags, mode_t mode)
{
    char path[PATH_MAX], key[DISK_NAME];
    if (!is_alive())
        return -1;
    int fd = __real_openat(at, name, flags, mode);
    if (noted.disk && fd >= 0 && flags & O_CREAT) {
        path_of(at, name, path);
        key_of(path, key);
        assert_true(fd < NOTED_FDS);
        noted.files[fd] = 1 + disk_create(noted.disk, key);
        assert_true(noted.files[fd] > 0);
    }
    return fd;
}

ssize_t __wrap_write(int fd, const void *p, size_t bytes)
{
    if (fd >= NOTED_FDS || !noted.disk || !noted.files[fd])
        return __real_write(fd, p, bytes);
    if (!is_alive())
        return -1;
    assert_int_equal(disk_write(noted.disk, noted.files[fd] - 1, p, bytes),
                     bytes);
    return __real_write(fd, p, bytes);
}

// It is not called: the disk decides what survives.
int __wrap_fsync(int fd)
{
    char path[PATH_MAX], key[DISK_NAME], text[128];
    int folder = 0;
    if (!noted.disk)
        return 0;
    if (!is_alive())
        return -1;
    if (noted.files[fd])
        return disk_sync(noted.disk, noted.files[fd] - 1);
    path_of(fd, NULL, path);
    if (strcmp(path, noted.root) != 0) {
        key_of(path, key);
        assert_true(noted_read(noted.disk, key, text));
        assert_int_equal(sscanf(text, "folder %d", &folder), 1);
    }
    snprintf(key, sizeof key, "%d/", folder);
    crash_sync_names(noted.disk, key);
    return 0;
}

int __wrap_close(int fd)
{
    if (fd >= 0 && fd < NOTED_FDS && noted.disk && noted.files[fd]) {
        disk_close(noted.disk, noted.files[fd] - 1);
        noted.files[fd] = 0;
    }
    return __real_close(fd);
}

int __wrap_rename(const char *from, const char *to)
{
    char old[DISK_NAME], new[DISK_NAME];
    if (!is_alive())
        return -1;
    if (noted.disk) {
        key_of(from, old);
        key_of(to, new);
        assert_int_equal(disk_rename(noted.disk, old, new), 0);
    }
    return __real_rename(from, to);
}

int __wrap_renameat(int a, const char *from, int b, const char *to)
{
    char old[PATH_MAX], new[PATH_MAX];
    path_of(a, from, old);
    path_of(b, to, new);
    return __wrap_rename(old, new);
}

// The exchange of two names has no function in older C libraries.
long __wrap_syscall(long number, long a, long b, long c, long d, long e)
{
    char one[DISK_NAME], other[DISK_NAME];
    if (number != SYS_renameat2)
        return __real_syscall(number, a, b, c, d, e);
    if (!is_alive())
        return -1;
    if (noted.disk) {
        key_of((const char *)b, one);
        key_of((const char *)d, other);
        assert_int_equal(crash_exchange(noted.disk, one, other), 0);
    }
    return __real_syscall(number, a, b, c, d, e);
}

// Removes the name from the disk. Returns false if the process is dead.
static bool note_removal(const char *path)
{
    char key[DISK_NAME];
    if (!is_alive())
        return false;
    if (noted.disk) {
        key_of(path, key);
        disk_remove(noted.disk, key);
    }
    return true;
}

int __wrap_unlink(const char *path)
{
    return note_removal(path) ? __real_unlink(path) : -1;
}

int __wrap_unlinkat(int at, const char *name, int flags)
{
    char path[PATH_MAX];
    assert_int_equal(flags, 0);
    path_of(at, name, path);
    return __wrap_unlink(path);
}

int __wrap_rmdir(const char *path)
{
    return note_removal(path) ? __real_rmdir(path) : -1;
}
