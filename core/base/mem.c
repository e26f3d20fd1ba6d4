// mem.c - zeroed, aligned, checked memory, and how much the machine still has.
//
// Large blocks come straight from mmap, aligned to 2 MiB and marked for huge
// pages: a step walks hundreds of MiB in order, and TLB misses would cost more
// than the arithmetic of AdamW. In the heap, vectors that each save allocates
// and frees would leave gaps that the next ones do not fit in. A 64-byte header
// in front of every block holds what mem_free() needs.

#include "base/base.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { HEADER = 64, HUGE = 2 << 20, LARGE = 1 << 20 };

struct header {
    void *base;   // to be freed or unmapped
    size_t bytes; // of the mapping; 0 for malloc
};

// Maps `bytes` and a header before them, which is at the start of a huge page.
// NULL if the system refuses.
static char *map_huge(size_t bytes, struct header *h)
{
    size_t len = bytes + HEADER + HUGE;
    char *base = mmap(NULL, len, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return NULL;
    char *at = (char *)(((uintptr_t)base + HUGE - 1) & ~(uintptr_t)(HUGE - 1));
    madvise(at, bytes + HEADER, MADV_HUGEPAGE); // it need not succeed
    *h = (struct header){base, len};
    return at;
}

void *mem_alloc(size_t n, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes) || bytes > SIZE_MAX / 4) {
        fail("memory: %zu objects of %zu bytes is more than can be addressed",
             n, size);
        return NULL;
    }
    struct header h = {0};
    char *at;
    if (bytes >= LARGE) {
        at = map_huge(bytes, &h);
    } else {
        size_t whole = (bytes + HEADER + 63) & ~(size_t)63;
        at = h.base = aligned_alloc(64, whole);
        if (at)
            memset(at, 0, whole);
    }
    if (!at) {
        char text[32];
        fail("memory: no %s left", mem_text(text, bytes));
        return NULL;
    }
    memcpy(at, &h, sizeof h);
    return at + HEADER;
}

void mem_free(void *p)
{
    if (!p)
        return;
    struct header h;
    memcpy(&h, (char *)p - HEADER, sizeof h);
    if (h.bytes)
        munmap(h.base, h.bytes);
    else
        free(h.base);
}

#if defined(M_MMAP_THRESHOLD)
void mem_keep(void)
{
    // This only saves time, so a refusal does no harm.
    (void)mallopt(M_MMAP_THRESHOLD, 32 << 20);
    (void)mallopt(M_TRIM_THRESHOLD, 1 << 30);
    (void)mallopt(M_TOP_PAD, 1 << 20);
}
#else // musl's malloc() has no settings
void mem_keep(void)
{
}
#endif

// The number after `name` in the first line of a file that begins with it; 0 if
// there is none.
static size_t read_number(const char *path, const char *name)
{
    char line[128];
    size_t n = 0, length = strlen(name);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, name, length) &&
            sscanf(line + length, "%zu", &n) == 1)
            break;
    if (f)
        fclose(f);
    return n;
}

size_t mem_available(void)
{
    size_t bytes = read_number("/proc/meminfo", "MemAvailable:") * 1024;
    size_t limit = read_number("/sys/fs/cgroup/memory.max", "");
    size_t used = read_number("/sys/fs/cgroup/memory.current", "");
    if (limit > used && limit - used < bytes)
        bytes = limit - used;
    return bytes;
}

size_t mem_now(void)
{
    return read_number("/proc/self/status", "VmRSS:") * 1024;
}

// Not getrusage(): its maximum includes the time before the last execve(), so a
// program that Python started would seem to be as large as Python.
size_t mem_peak(void)
{
    return read_number("/proc/self/status", "VmHWM:") * 1024;
}

char *mem_text(char buf[32], size_t bytes)
{
    const char *unit[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double v = (double)bytes;
    int u = 0;
    for (; v >= 1024 && u < 6; u++)
        v /= 1024;
    snprintf(buf, 32, u ? "%.1f %s" : "%.0f %s", v, unit[u]);
    return buf;
}
