// token_file.c - maps a file, or says in one line why it cannot.

#include "data/token_file.h"

#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int say_why(int error, const char *key, const char *path)
{
    const char *cure = error == ENOENT   ? "; try: the path of a file"
                       : error == EACCES ? "; try: chmod a+r"
                                         : "";
    return fail("%s=%s: %s%s", key, path, strerror(error), cure);
}

static int map_open(struct file *f, int fd, const char *key, const char *path)
{
    struct stat st;
    if (fstat(fd, &st))
        return say_why(errno, key, path);
    if (S_ISDIR(st.st_mode))
        return fail("%s=%s: a folder; try: the path of a file", key, path);
    if (!S_ISREG(st.st_mode))
        return fail("%s=%s: not a regular file; try: copy it into one", key,
                    path);
    if (st.st_size == 0)
        return fail("%s=%s: the file is empty; try: a text", key, path);
    size_t bytes = (size_t)st.st_size;
    void *at = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        return say_why(errno, key, path);
    *f = (struct file){at, bytes};
    return 0;
}

int file_map(struct file *f, const char *key, const char *path)
{
    // Without O_NONBLOCK a named pipe would wait here for its writer.
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return say_why(errno, key, path);
    int rc = map_open(f, fd, key, path);
    close(fd);
    return rc;
}

void file_unmap(struct file *f)
{
    if (f->at)
        munmap((void *)(uintptr_t)f->at, f->bytes);
    *f = (struct file){0};
}

bool file_is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}
