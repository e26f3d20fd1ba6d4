// fresh_run.h - a run with default settings, settings for it, and checks of
// error messages. Include it instead of test.h.

#pragma once

#include "base/base.h"
#include "config/config.h"

#include "tests/test.h"

// Like cmocka's fail_msg(), which calls cmocka's fail() instead of ours.
#define wrong(...)                                                             \
    (print_error(__VA_ARGS__), print_error("\n"), _fail(__FILE__, __LINE__))

static inline struct run fresh(void)
{
    struct run r;
    config_defaults(&r);
    return r;
}

static inline int parse(struct run *r, int n, const char *const *words)
{
    return config_parse(r, n, (char *const *)words);
}

static inline void assert_says(const char *part)
{
    if (!strstr(fail_message(), part))
        wrong("'%s' does not name '%s'", fail_message(), part);
}
