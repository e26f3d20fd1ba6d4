// library.h - functions of libraries that are found at run time.

#ifndef TELEMETRY_LIBRARY_H
#define TELEMETRY_LIBRARY_H

#include <dlfcn.h>

// *function, a function pointer, := `name` of `library`, or NULL. 0, or -1
// where it is not there. A function pointer out of dlsym's data pointer, as
// POSIX has it.
static inline int library_find(void *library, const char *name, void *function)
{
    void *at = dlsym(library, name);
    *(void **)function = at;
    return at ? 0 : -1;
}

#endif
