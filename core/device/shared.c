// shared.c - host memory that other processes of this host can map.

#include "device/shared.h"

#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

// From Linux 5.14 on; the headers of older systems do not have it.
#if !defined(MADV_POPULATE_WRITE)
#define MADV_POPULATE_WRITE 23
#endif

enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

static void *map(int fd, size_t bytes, int access)
{
    void *p = mmap(NULL, bytes, access, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        return NULL;
    // Asks for large pages. If the system refuses, nothing is wrong.
    madvise(p, bytes, MADV_HUGEPAGE);
    return p;
}

// The file is sealed, so that it cannot shrink while processes map it.
static int make_file(size_t bytes)
{
    int fd = memfd_create("lockstep", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -1;
    if (!ftruncate(fd, (off_t)bytes) && !fcntl(fd, F_ADD_SEALS, SEALS))
        return fd;
    close(fd);
    return -1;
}

static int populate(int fd, void *p, size_t bytes)
{
    if (!madvise(p, bytes, MADV_POPULATE_WRITE))
        return 0;
    return errno == EINVAL ? fallocate(fd, 0, 0, (off_t)bytes) : -1;
}

void *shared_alloc(size_t bytes, struct shared_name *name)
{
    struct stat st;
    char text[32];
    int fd = make_file(bytes);
    void *p = fd < 0 ? NULL : map(fd, bytes, PROT_READ | PROT_WRITE);
    if (p && !populate(fd, p, bytes) && !fstat(fd, &st)) {
        *name = (struct shared_name){.pid = (int32_t)getpid(),
                                     .fd = fd,
                                     .inode = st.st_ino,
                                     .bytes = bytes};
        return p;
    }
    fail("memory: cannot share %s: %s%s", mem_text(text, bytes),
         strerror(errno), errno == EFBIG ? "; try: ulimit -f unlimited" : "");
    if (p)
        munmap(p, bytes);
    if (fd >= 0)
        close(fd);
    return NULL;
}

void shared_free(void *p, const struct shared_name *name)
{
    munmap(p, name->bytes);
    close(name->fd);
}

void *shared_map(const struct shared_name *name, bool write)
{
    char path[64];
    struct stat st;
    void *p = NULL;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", name->pid, name->fd);
    int fd = open(path, (write ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    if (fd < 0) {
        fail("memory: %s: %s", path, strerror(errno));
        return NULL;
    }
    if (fstat(fd, &st) || st.st_ino != name->inode ||
        (uint64_t)st.st_size != name->bytes)
        fail("memory: %s is not what process %d shares", path, name->pid);
    else if (!(p = map(fd, name->bytes, PROT_READ | (write ? PROT_WRITE : 0))))
        fail("memory: %s: %s", path, strerror(errno));
    close(fd);
    return p;
}

void shared_unmap(void *p, const struct shared_name *name)
{
    if (p)
        munmap(p, name->bytes);
}
