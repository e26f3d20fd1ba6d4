// slow_disk.c - makes fsync() of a checkpoint's weights slow, as on a disk that
// writes a large model: it takes SLOW_DISK_S seconds, or 6. SLOW_DISK_FILE is
// (a part of) the name of another file that is slow instead. A rename() to a
// name with SLOW_RENAME in it is as slow, and first makes the file `renaming`
// in the present folder. With SLOW_FLOCK flock() is, and makes `holding`. Tests
// preload it.

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void wait_as_long_as_asked(void)
{
    const char *asked = getenv("SLOW_DISK_S");
    double s = asked ? strtod(asked, NULL) : 6;
    struct timespec t = {.tv_sec = (time_t)s};
    t.tv_nsec = (long)((s - (double)t.tv_sec) * 1e9);
    nanosleep(&t, NULL);
}

static void say_and_wait(const char *file)
{
    close(open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    wait_as_long_as_asked();
}

int flock(int fd, int operation)
{
    if (getenv("SLOW_FLOCK"))
        say_and_wait("holding");
    return (int)syscall(SYS_flock, fd, operation);
}

int rename(const char *old, const char *new)
{
    const char *slow = getenv("SLOW_RENAME");
    if (slow && strstr(new, slow))
        say_and_wait("renaming");
    return (int)syscall(SYS_renameat2, AT_FDCWD, old, AT_FDCWD, new, 0);
}

int fsync(int fd)
{
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    path[n > 0 ? n : 0] = '\0';
    const char *slow = getenv("SLOW_DISK_FILE");
    if (strstr(path, slow ? slow : "model.safetensors"))
        wait_as_long_as_asked();
    return (int)syscall(SYS_fsync, fd);
}
