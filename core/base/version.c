// version.c - the version number, which CMake passes in, and the commit.

#include "base/version.h"

#include "base/revision.h" // CMake writes it

#include <stdio.h>

const char version_number[] = LOCKSTEP_VERSION;
const char version_revision[] = LOCKSTEP_REVISION;

char *version_text(char text[VERSION_TEXT])
{
    snprintf(text, VERSION_TEXT, "%s%s%s", version_number,
             *version_revision ? " " : "", version_revision);
    return text;
}

int version_print(const char *program)
{
    printf("%s %s (%s)\n", program, version_number, version_revision);
    return 0;
}
