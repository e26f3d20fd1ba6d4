// sandbox.h - what a process that runs a student's file may no longer do.

#ifndef LABS_SANDBOX_H
#define LABS_SANDBOX_H

// From now on this process, and all its threads, can start no program and no
// process, open no connection, and neither write, rename nor remove a file that
// is not open yet. It ends after 5 s of processor time. This stops accidents
// and casual cheats. It is no jail: let official grading run in a container
// that is thrown away. 0, or -1 after fail().
int sandbox_enter(void);

#endif
