// processor.h - the name of this machine's processor.

#pragma once

#include <stddef.h>

// Writes the name that `path` (/proc/cpuinfo) gives, or "" if it gives none. On
// ARM, where the kernel knows numbers only, it is the name of the core's
// design, or both numbers: "ARM 0x41 0xd4f" (implementer and part).
void processor_name(char *out, size_t size, const char *path);
