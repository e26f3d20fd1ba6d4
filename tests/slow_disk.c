// slow_disk.c - makes fsync() of a checkpoint's weights slow, as on a disk that
// writes a large model. Tests preload it.

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SECONDS = 6 };

int fsync(int fd)
{
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    path[n > 0 ? n : 0] = '\0';
    if (strstr(path, "model.safetensors"))
        sleep(SECONDS);
    return (int)syscall(SYS_fsync, fd);
}
