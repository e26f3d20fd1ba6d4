// version.c - the version number and the commit, which CMake passes in.

#include "base/version.h"

#include <stdio.h>

const char version_number[] = LOCKSTEP_VERSION;
const char version_revision[] = LOCKSTEP_REVISION;

int version_print(const char *program)
{
    printf("%s %s", program, version_number);
    printf(*version_revision ? " (%s)\n" : "\n", version_revision);
    return 0;
}
