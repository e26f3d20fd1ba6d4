// version.h - which build this is.

#pragma once

// The version of CMake's project(), and COMMIT+HASH of the sources that were
// built (revision.cmake).
extern const char version_number[], version_revision[];

// Writes "0.1.0 61fb981+1a2b3c4d", or the number alone. Returns text.
enum { VERSION_TEXT = 128 };
char *version_text(char text[VERSION_TEXT]);

// Print "PROGRAM 0.1.0 (61fb981+1a2b3c4d)", as --version does. Returns 0.
int version_print(const char *program);
