// file.c - reads files, and replaces them: it writes a temporary file, calls
// fsync on it, renames it, and calls fsync on its folder.
//
// rename() is atomic for other processes. But only fsync of the file makes sure
// that the data are on the disk before the new name is. Only fsync of the
// folder makes sure that the new name is on the disk, too.

#include "base/file.h"

#include "base/base.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

const char *file_remedy(int error)
{
    return error == EACCES || error == EROFS || error == ENOENT ||
                   error == ENOTDIR
               ? "; try: a folder that you may write to"
               : "";
}

// Opens a regular file. Returns a descriptor, or -1 after fail().
static int open_regular(const char *path, int flags)
{
    struct stat st;
    // O_NONBLOCK: does not wait for the writer of a FIFO
    int fd = open(path, flags | O_NONBLOCK | O_CLOEXEC, 0666);
    if (fd < 0 && errno == ELOOP && (flags & O_NOFOLLOW))
        return fail(
            "%s: a symbolic link, which is not followed; try: remove it", path);
    if (fd < 0)
        return fail("%s: %s%s", path, strerror(errno),
                    flags & O_CREAT ? file_remedy(errno) : "");
    if (fstat(fd, &st))
        fail("%s: %s", path, strerror(errno));
    else if (!S_ISREG(st.st_mode))
        fail("%s: not a regular file", path);
    else
        return fd;
    close(fd);
    return -1;
}

static FILE *open_stream(const char *path, int fd, const char *mode)
{
    FILE *f = fd < 0 ? NULL : fdopen(fd, mode);
    if (fd >= 0 && !f) {
        fail("%s: %s", path, strerror(errno));
        close(fd);
    }
    return f;
}

FILE *file_open(const char *path)
{
    return open_stream(path, open_regular(path, O_RDONLY), "r");
}

FILE *file_open_here(const char *path)
{
    return open_stream(path, open_regular(path, O_RDONLY | O_NOFOLLOW), "r");
}

FILE *file_create(const char *path)
{
    int fd = open_regular(path, O_RDWR | O_CREAT | O_NOFOLLOW);
    if (fd >= 0 && ftruncate(fd, 0)) {
        fail("%s: %s", path, strerror(errno));
        close(fd);
        return NULL;
    }
    return open_stream(path, fd, "w+");
}

FILE *file_append(const char *path)
{
    int fd = open_regular(path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW);
    return open_stream(path, fd, "a+");
}

int file_flush(FILE *f)
{
    errno = EIO;
    if (ferror(f))
        putc('\n', f); // the cause of an earlier failure is lost: meet it again
    return fflush(f) || ferror(f) ? -1 : 0;
}

int file_close(FILE *f, const char *path)
{
    int rc = file_flush(f) ? fail("%s: %s", path, strerror(errno)) : 0;
    return fclose(f) && !rc ? fail("%s: %s", path, strerror(errno)) : rc;
}

bool file_line(char *line, int size, FILE *f)
{
    if (!fgets(line, size, f))
        return false;
    size_t n = strlen(line);
    return n + 1 == (size_t)size || (n > 0 && line[n - 1] == '\n') || feof(f);
}

char *file_read(const char *path, size_t most)
{
    struct stat st;
    FILE *f = file_open(path);
    char *text = NULL;
    if (!f)
        return NULL;
    if (fstat(fileno(f), &st))
        fail("%s: %s", path, strerror(errno));
    else if ((size_t)st.st_size > most)
        fail("%s: %zu bytes are more than %zu", path, (size_t)st.st_size, most);
    else
        text = mem_alloc((size_t)st.st_size + 1, 1);
    if (text && fread(text, 1, (size_t)st.st_size, f) != (size_t)st.st_size) {
        fail("%s: ends early", path);
        mem_free(text);
        text = NULL;
    }
    fclose(f);
    return text;
}

int file_read_at(int fd, const char *path, void *out, size_t bytes, size_t off)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t got =
            pread(fd, (char *)out + done, bytes - done, (off_t)(off + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail("%s: %s", path, strerror(errno));
        if (got == 0)
            return fail("%s: ends after %zu bytes", path, off + done);
        done += (size_t)got;
    }
    return 0;
}

// Opens the folder of `path`. *name becomes the last part of `path`.
static int open_folder(const char *path, const char **name)
{
    const char *slash = strrchr(path, '/');
    char folder[PATH_MAX] = ".";
    *name = slash ? slash + 1 : path;
    if (slash &&
        text_into(folder, sizeof folder, "%.*s", (int)(slash - path) + 1, path))
        return -1;
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return fail("cannot write %s: folder %s: %s%s", path, folder,
                    strerror(errno), file_remedy(errno));
    return fd;
}

static int write_piece(int fd, const struct iovec *piece)
{
    for (size_t done = 0; done < piece->iov_len;) {
        ssize_t n = write(fd, (const char *)piece->iov_base + done,
                          piece->iov_len - done);
        if (n < 0 && errno != EINTR)
            return -1;
        if (n > 0)
            done += (size_t)n;
    }
    return 0;
}

static int write_temporary(int folder, const char *name,
                           const struct iovec *pieces, int n)
{
    unlinkat(folder, name, 0); // it may be a FIFO
    int fd =
        openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return -1;
    int status = 0;
    for (int i = 0; i < n && status == 0; i++)
        status = write_piece(fd, &pieces[i]);
    if (status == 0)
        status = fsync(fd);
    int cause = errno;
    if (close(fd) && status == 0)
        return -1;
    errno = cause;
    return status;
}

int file_replace(const char *path, const struct iovec *pieces, int n)
{
    const char *name;
    char temporary[NAME_MAX + 1];
    int folder = open_folder(path, &name), status = -1;
    if (folder < 0)
        return -1;
    if (text_into(temporary, sizeof temporary, "%s.tmp", name))
        goto close_folder;
    if (write_temporary(folder, temporary, pieces, n) ||
        renameat(folder, temporary, folder, name)) {
        fail("cannot write %s: %s%s", path, strerror(errno),
             file_remedy(errno));
        unlinkat(folder, temporary, 0);
        goto close_folder;
    }
    // Some network file systems cannot do this. The rename has worked
    // nevertheless.
    if (fsync(folder) && errno != EINVAL && errno != ENOTSUP) {
        fail("%s is written, but fsync of its folder failed: %s", path,
             strerror(errno));
        goto close_folder;
    }
    status = 0;
close_folder:
    close(folder);
    return status;
}

int file_replace_text(const char *path, const char *text)
{
    struct iovec piece = {.iov_base = (void *)text, .iov_len = strlen(text)};
    return file_replace(path, &piece, 1);
}

FILE *file_next(const char *path)
{
    char next[PATH_MAX];
    struct stat st;
    if (!stat(path, &st) && !S_ISREG(st.st_mode)) {
        fail("%s: not a regular file; try: the name of a file", path);
        return NULL;
    }
    return text_into(next, sizeof next, "%s.next", path) ? NULL
                                                         : file_create(next);
}

int file_finish(FILE *f, const char *path, int rc)
{
    char next[PATH_MAX];
    int named = text_into(next, sizeof next, "%s.next", path);
    CHECK(named == 0); // file_next() could name it
    if (file_close(f, path))
        rc = -1;
    if (!rc && rename(next, path))
        rc = fail("%s: %s", path, strerror(errno));
    if (rc)
        unlink(next);
    return rc ? -1 : 0;
}

int file_can_replace(const char *path)
{
    FILE *f = file_next(path);
    if (f)
        file_finish(f, path, -1);
    return f ? 0 : -1;
}

int file_make_folder(const char *path)
{
    char part[PATH_MAX];
    int above = 0; // errno of the first parent that could not be made
    if (text_into(part, sizeof part, "%s", path))
        return -1;
    for (char *p = part + 1; *p; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        if (mkdir(part, 0777) && errno != EEXIST && errno != ENOENT && !above)
            above = errno;
        *p = '/';
    }
    if (mkdir(part, 0777) == 0)
        return 1;
    struct stat st;
    if (errno == EEXIST && stat(part, &st) == 0 && S_ISDIR(st.st_mode))
        return 0;
    bool lacks = errno == ENOENT && above; // no parent; `above` says why
    return fail("folder %s: %s", path, strerror(lacks ? above : errno));
}

int file_remove_folder(const char *path)
{
    struct stat st;
    if (!lstat(path, &st) && S_ISLNK(st.st_mode))
        return unlink(path) ? fail("%s: %s", path, strerror(errno)) : 0;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : fail("%s: %s", path, strerror(errno));
    DIR *d = fdopendir(fd);
    if (!d) {
        close(fd);
        return fail("%s: %s", path, strerror(errno));
    }
    for (struct dirent *e; (e = readdir(d));)
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
            unlinkat(dirfd(d), e->d_name, 0);
    closedir(d);
    return rmdir(path) ? fail("%s: %s", path, strerror(errno)) : 0;
}

// Whether the open file still has the name `path`: 1, 0, or -1 after fail().
static int is_named(int fd, const char *path)
{
    struct stat open_file, named;
    if (fstat(fd, &open_file))
        return fail("%s: %s", path, strerror(errno));
    return !stat(path, &named) && named.st_ino == open_file.st_ino &&
           named.st_dev == open_file.st_dev;
}

int file_lock(const char *path)
{
    for (;;) {
        int fd = open_regular(path, O_RDWR | O_CREAT | O_NOFOLLOW);
        if (fd < 0)
            return -1;
        if (flock(fd, LOCK_EX | LOCK_NB)) {
            int error = errno;
            close(fd);
            return error == EWOULDBLOCK ? FILE_LOCKED
                                        : fail("%s: %s", path, strerror(error));
        }
        int same = is_named(fd, path); // 0: it was removed after open()
        if (same > 0)
            return fd;
        close(fd);
        if (same < 0)
            return -1;
    }
}

void file_unlock(int fd, const char *path)
{
    unlink(path);
    close(fd);
}
