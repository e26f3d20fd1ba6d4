// version.c - the version's number and the commit. CMake passes both in.

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
