// share.h - files that come with the programs: figures, experiments, labs.
//
//     PREFIX/bin/lockstep            the programs
//     PREFIX/libexec/lockstep/..     programs that lockstep starts
//     PREFIX/share/lockstep/..       these files, as in the source tree
//
// PREFIX follows from this program's own path, so an installed tree may be
// moved. A program that was not installed uses the source tree.

#pragma once

#include <stddef.h>

// Writes the path of `name` into out[size]: "plots/loss.gp", or "" for the
// whole folder. The file need not exist. 0, or -1 after fail().
int share_path(char *out, size_t size, const char *name);

// Writes the path of another of our programs: beside this one, or in libexec.
// 0, or -1 after fail() if it is in neither.
int share_program(char *out, size_t size, const char *name);
