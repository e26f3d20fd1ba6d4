// sandbox.h - limits for a process that runs a student's file.

#ifndef LABS_SANDBOX_H
#define LABS_SANDBOX_H

// Limits this process and all its threads. From now on they cannot start a
// program or a process, open a connection, open a file to write to it, or
// rename or remove a file. They can still write to files that are open. The
// process ends after 5 s of processor time. This stops accidents and casual
// cheats, but it is not secure: run official grading in a container that is
// deleted afterwards. Returns 0, or -1 after fail().
int sandbox_enter(void);

#endif
