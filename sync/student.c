// student.c - a function of a student's file: the shared object lab=FILE.

#include "sync/student.h"

#include "base/base.h"
#include "base/library.h"
#include "config/settings.h"

#include <string.h>

void *student_open(const char *path)
{
    char file[CONFIG_PATH + 2];
    if (!*path) {
        fail("sync=lab: no file; try: lab=FILE, or labs/grade 4 --train, which "
             "makes one");
        return NULL;
    }
    if (text_into(file, sizeof file, "%s%s", strchr(path, '/') ? "" : "./",
                  path))
        return NULL;
    void *opened = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!opened)
        fail("lab=%s: %s", path, dlerror());
    return opened;
}

int student_find(void *file, const char *name, void *function)
{
    return library_find(file, name, function) ? fail("lab=FILE: %s", dlerror())
                                              : 0;
}

void student_close(void **file)
{
    if (*file)
        dlclose(*file);
    *file = NULL;
}
