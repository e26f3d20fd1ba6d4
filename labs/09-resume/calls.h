// calls.h - lab 9: the numbers of the calls of disk.h.

#ifndef LABS_RESUME_CALLS_H
#define LABS_RESUME_CALLS_H

#include "labs/09-resume/resume.h"

enum { RESUME_SAVE, RESUME_RESUME, RESUME_PRUNE };

enum {
    DISK_CREATE,
    DISK_OPEN,
    DISK_WRITE,
    DISK_READ,
    DISK_SYNC,
    DISK_CLOSE,
    DISK_RENAME,
    DISK_REMOVE,
    DISK_SYNC_FOLDER,
    DISK_LIST,
};

#endif
