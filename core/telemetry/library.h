// library.h - functions of libraries that are found at run time.

#ifndef TELEMETRY_LIBRARY_H
#define TELEMETRY_LIBRARY_H

#include <dlfcn.h>

// Sets *function (a pointer to a function) to function `name` of `library`. 0,
// or -1 if it is not there; then it is NULL. POSIX allows the conversion of
// dlsym's data pointer to a function pointer.
static inline int library_find(void *library, const char *name, void *function)
{
    void *at = dlsym(library, name);
    *(void **)function = at;
    return at ? 0 : -1;
}

#endif
