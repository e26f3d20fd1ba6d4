// test.h - cmocka, and the headers that it needs. cmocka's fail() is undefined,
// because it would hide ours. Include last.

#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#undef fail

enum { TEST_SKIPPED = 77 }; // exit status of a test that could not run

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TEST_SANITIZED 1
#else
#define TEST_SANITIZED 0
#endif

// Whether this is a long run (tests/long.cmake), which leaves out no case.
static inline bool test_long(void)
{
    return getenv("LOCKSTEP_LONG") != NULL;
}
