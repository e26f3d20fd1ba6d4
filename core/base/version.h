// version.h - which build this is.

#ifndef BASE_VERSION_H
#define BASE_VERSION_H

// The version of CMake's project(), and the commit when CMake was last run, ""
// if that is unknown.
extern const char version_number[], version_revision[];

// Print "PROGRAM 0.1.0 (61fb981)", as --version does. Returns 0.
int version_print(const char *program);

#endif
