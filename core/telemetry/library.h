// library.h - functions of libraries that are found at run time.

#ifndef TELEMETRY_LIBRARY_H
#define TELEMETRY_LIBRARY_H

#include <dlfcn.h>

// *function (a function pointer) := function `name` of `library`. 0, or -1 and
// NULL if it is not there. As POSIX says, dlsym's data pointer becomes a
// function pointer.
static inline int library_find(void *library, const char *name, void *function)
{
    void *at = dlsym(library, name);
    *(void **)function = at;
    return at ? 0 : -1;
}

#endif
