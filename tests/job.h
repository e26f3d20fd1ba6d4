// job.h - runs our programs as a user would, and reads the files that they
// write.

#pragma once

#include <stdbool.h>
#include <stddef.h>

struct job {
    int status; // exit status; 128 + signal; 124: the deadline passed
    char *out;  // stdout and stderr; valid until the next job_run()
};

// job_dir() returns this test program's folder, which the first call makes.
// job_cleanup() removes it, and kills all processes that our jobs left running.
const char *job_dir(void);
int job_cleanup(void **state);

// A group's setup: writes text.txt in job_dir(), 60 kB that a model can learn.
int job_text(void **state);

// Runs a shell command in job_dir() and fills *j. The build's programs are
// first in PATH. If the command takes more than `deadline` seconds, all
// processes of our jobs are killed.
void job_run(struct job *j, int deadline, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

// Waits until all processes of our jobs have ended, for at most `deadline`
// seconds. Returns how many still run, and logs a line for each.
int job_processes(int deadline);

// Returns the number `key` of DIR/summary.json; "a.b" is key b of object a. NaN
// if there is none.
double job_summary(const char *dir, const char *key);

// Writes column `name` of DIR/steps.csv, of the rows of `rank`, to out[max].
// Returns how many values these are.
int job_column(const char *dir, const char *name, int rank, double *out,
               int max);

// Whether job_dir()/path exists.
bool job_has(const char *path);
