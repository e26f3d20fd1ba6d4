// student.c - a function of a student's file: the shared object lab=FILE.

#include "sync/student.h"

#include "base/base.h"
#include "base/library.h"
#include "config/settings.h"

#include <string.h>

void student_close(void **file)
{
    if (*file)
        dlclose(*file);
    *file = NULL;
}

void *student_open(const char *path, const char *name, void *function)
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
    if (!opened || library_find(opened, name, function)) {
        fail("lab=%s: %s", path, dlerror());
        student_close(&opened);
    }
    return opened;
}
