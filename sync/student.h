// student.h - a function of a student's file: the shared object lab=FILE, which
// labs/grade N --train makes.

#pragma once

// Opens the file, and finds a function of it: *function, a pointer to a
// function, points to it. Returns NULL after fail(). `path` is borrowed.
void *student_open(const char *path, const char *name, void *function);

// Takes NULL, too, and sets *file to NULL.
void student_close(void **file);
