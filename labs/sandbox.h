// sandbox.h - limits for a process that runs a student's file.

#ifndef LABS_SANDBOX_H
#define LABS_SANDBOX_H

#include <stddef.h>

// Limits this process. From now on it can use its memory, write to the
// descriptors that are open and use its sockets, and nothing else: it cannot
// open files or connections, read a file, start threads or processes, or send a
// signal to another process. It ends after 5 s of processor time, and gets at
// most 1 GiB more memory, and `stack` bytes of stack; 0: any number. Run
// official grading in a container nevertheless: no filter protects from errors
// of the kernel. Returns 0, or -1 after fail().
int sandbox_enter(size_t stack);

#endif
