// noted_calls.h - calls of the system that are also noted on the disk of lab 9
// (labs/crash.h), where a folder is a file that holds its number, and the names
// in it begin with this number. A killed process makes no more changes: its
// calls fail. The program links with --wrap for each call.

#pragma once

#include "labs/crash.h"

enum { NOTED_FDS = 1024 };

extern struct noted {
    struct disk *disk;    // NULL: calls are not noted
    char root[64];        // the real folder; all paths are below it
    long left;            // calls until the process is killed
    int folders;          // that were made
    int files[NOTED_FDS]; // descriptor of the disk and 1, by real descriptor
} noted;

// Reads a small file of a disk. Returns false if there is none.
bool noted_read(struct disk *d, const char *key, char text[128]);
