// student.h - a function of a student's file: the shared object lab=FILE, which
// labs/grade N --train makes.

#pragma once

// Opens the file. Returns NULL after fail(). `path` is borrowed.
void *student_open(const char *path);

// Finds a function of an open file: *function, a pointer to a function, points
// to it. Returns 0, or -1 after fail().
int student_find(void *file, const char *name, void *function);

// Takes NULL, too, and sets *file to NULL.
void student_close(void **file);
