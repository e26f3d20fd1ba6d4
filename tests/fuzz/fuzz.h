// fuzz.h - what the fuzzers share: an entry point, and bytes given as a file.

#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include "base/base.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// A file in memory that holds these bytes: its descriptor, for the caller to
// close, and in `path` a name that open() takes.
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

#endif
