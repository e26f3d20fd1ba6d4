// fuzz.h - shared by the fuzzers: the entry point, and a file of given bytes.

#pragma once

#include "base/base.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// Makes a file in memory with these bytes. Returns its descriptor, which the
// caller closes. `path` gets a name for open().
static inline int fuzz_file(const uint8_t *data, size_t size, char path[64])
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    CHECK(fd >= 0);
    for (size_t done = 0; done < size;) {
        ssize_t n = write(fd, data + done, size - done);
        CHECK(n > 0);
        done += (size_t)n;
    }
    CHECK(text_into(path, 64, "/proc/self/fd/%d", fd) == 0);
    return fd;
}
