// library.h - functions of libraries that are found at run time.

#pragma once

#include <dlfcn.h>
#include <string.h>

// Sets *function (a pointer to a function) to function `name` of `library`. 0,
// or -1 if it is not there; then it is NULL. memcpy stores it, since ISO C has
// no cast from a pointer to data to a pointer to a function.
static inline int library_find(void *library, const char *name, void *function)
{
    void *at = dlsym(library, name);
    memcpy(function, &at, sizeof at);
    return at ? 0 : -1;
}
