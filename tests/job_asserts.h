// job_asserts.h - asserts about a job of job.h. If one fails, the job's output
// is shown.

#pragma once

#include "tests/job.h"

#include <stdlib.h>
#include <string.h>

#include "tests/test.h"

static inline void assert_status(const struct job *j, int status)
{
    if (j->status != status)
        print_error("%s\n", j->out);
    assert_int_equal(j->status, status);
}

static inline void assert_ok(const struct job *j)
{
    assert_status(j, 0);
}

static inline void assert_prints(const struct job *j, const char *part)
{
    if (!strstr(j->out, part))
        print_error("'%s' is not in: %s\n", part, j->out);
    assert_non_null(strstr(j->out, part));
}

static inline void assert_lacks(const struct job *j, const char *part)
{
    if (strstr(j->out, part))
        print_error("'%s' is in: %s\n", part, j->out);
    assert_null(strstr(j->out, part));
}

// Asserts that two runs have the same model and optimiser files in the
// checkpoint of a step.
static inline void assert_same_files(const char *a, const char *b, int step)
{
    struct job j;
    job_run(&j, 20,
            "for f in model optimizer; do cmp %s/checkpoint-%d/$f.safetensors "
            "%s/checkpoint-%d/$f.safetensors || exit 1; done",
            a, step, b, step);
    assert_ok(&j);
}

// What run.json says of a law.
static inline double job_law(const char *out, const char *name)
{
    struct job j;
    job_run(&j, 10,
            "python3 -c 'import json; print(json.load(open(\"%s/run.json\"))"
            "[\"law\"][\"%s\"])'",
            out, name);
    assert_ok(&j);
    return strtod(j.out, NULL);
}

static inline int count_lines(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}
