// version.h - which build this is.

#ifndef BASE_VERSION_H
#define BASE_VERSION_H

// Of CMake's project(), and the commit that was there when it was configured.
extern const char version_number[], version_revision[];

// Print "PROGRAM 0.1.0 (61fb981)", as --version does. Returns 0.
int version_print(const char *program);

#endif
